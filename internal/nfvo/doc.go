// Package nfvo is this manager's side towards an NFVO: it asks for grants (SOL003 v2.6.1 §9) and fetches VNF packages that
// are not onboarded here (SOL003 v2.6.1 §10).
package nfvo
