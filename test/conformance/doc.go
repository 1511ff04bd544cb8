// Package conformance holds the built binary against SOL003 v2.6.1 §5, over HTTP: every resource with every method,
// supported or not, and every status that the standard lists for it. All bodies, of requests and of responses, are held
// against the OpenAPI documents, and so are notifications and grant requests.
//
// What must be shown is the list in listed_test.go; what shows it are the tables of cases. A line of the list without a
// case fails the test, and so does a case that is not on the list.
package conformance
