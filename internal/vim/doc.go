// Package vim keeps the registered VIMs of the vims API: it checks that they can be logged in to before it stores them,
// watches whether they can be reached, and finds the VIM that an operation is to use.
package vim
