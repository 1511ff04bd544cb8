// Package metrics holds the Prometheus metrics of the server: requests, operations, calls to VIMs, the database.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Metrics is one process's metrics, each under the prefix vnfm_.
type Metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	states     *prometheus.CounterVec
	operations *prometheus.HistogramVec
	vimCalls   *prometheus.HistogramVec
	vimQueue   *prometheus.HistogramVec
	vimRefused *prometheus.CounterVec
	vimCircuit *prometheus.GaugeVec
	vimLogins  *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	lateness   prometheus.Histogram
	drift      drift
}

// New makes the metrics of a server that uses pool.
func New(pool *pgxpool.Pool) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vnfm_http_request_duration_seconds", Help: "Requests answered, by route, method and status.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}, []string{"route", "method", "status"}),
		states: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vnfm_lcm_operation_states_total", Help: "States that LCM operation occurrences have entered.",
		}, []string{"operation", "state"}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vnfm_lcm_operation_duration_seconds", Help: "LCM operations from their acceptance to their result.",
			Buckets: prometheus.ExponentialBuckets(0.002, 3, 14),
		}, []string{"operation", "state"}),
		vimCalls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vnfm_vim_call_duration_seconds", Help: "Calls to VIMs, by VIM, method and status (0: no answer).",
			Buckets: prometheus.ExponentialBuckets(0.002, 3, 12),
		}, []string{"vim", "method", "status"}),
		vimQueue: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vnfm_vim_call_queued_seconds", Help: "How long calls to VIMs waited for their turn, by VIM.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"vim"}),
		vimRefused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vnfm_vim_calls_refused_total", Help: "Calls to VIMs that were not made, by VIM and reason: open circuit, busy (Retry-After).",
		}, []string{"vim", "reason"}),
		vimCircuit: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vnfm_vim_circuit_state", Help: "Whether a service of a VIM is called: 0 yes (closed), 1 one call to see (half-open), 2 no (open). Region is empty for Keystone.",
		}, []string{"vim", "region", "service"}),
		vimLogins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vnfm_vim_logins_total", Help: "Logins to VIMs, by VIM and outcome: ok, refused, failed.",
		}, []string{"vim", "outcome"}),
	}
	m.deliveries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vnfm_notification_deliveries_total", Help: "Attempts to deliver notifications, by outcome: delivered, failed (tried again), given_up.",
	}, []string{"outcome"})
	m.lateness = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "vnfm_notification_age_seconds", Help: "Age of notifications when they were delivered.",
		Buckets: prometheus.ExponentialBuckets(0.002, 4, 12),
	})
	m.registry.MustRegister(m.requests, m.states, m.operations, m.vimCalls, m.vimQueue, m.vimRefused, m.vimCircuit, m.vimLogins, m.deliveries, m.lateness,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.drift = newDrift(m.registry)
	for name, value := range map[string]func(*pgxpool.Stat) float64{
		"acquired": func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) },
		"idle":     func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) },
		"max":      func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) },
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vnfm_database_connections", Help: "Connections to the database.", ConstLabels: prometheus.Labels{"state": name},
		}, func() float64 { return value(pool.Stat()) }))
	}
	return m
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request records one answered request.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// OpOcc records the state that an op occ has entered.
func (m *Metrics) OpOcc(op *lcm.OpOcc) {
	m.states.WithLabelValues(string(op.Operation), string(op.State)).Inc()
	switch op.State {
	case sol003.LcmOperationStateCompleted, sol003.LcmOperationStateFailedTemp, sol003.LcmOperationStateRolledBack, sol003.LcmOperationStateFailed:
		m.operations.WithLabelValues(string(op.Operation), string(op.State)).Observe(op.StateEnteredTime.Sub(op.StartTime).Seconds())
	default:
	}
}

// Call records a call to a VIM.
func (m *Metrics) Call(vimID, _, method string, status int, queued, took time.Duration) {
	m.vimCalls.WithLabelValues(vimID, method, strconv.Itoa(status)).Observe(took.Seconds())
	m.vimQueue.WithLabelValues(vimID).Observe(queued.Seconds())
}

// Refused records a call to a VIM that was not made, and why.
func (m *Metrics) Refused(vimID, why string) { m.vimRefused.WithLabelValues(vimID, why).Inc() }

// Circuit records the state (closed, half-open, open) that a service's circuit has entered.
func (m *Metrics) Circuit(vimID, region, service, state string) {
	m.vimCircuit.WithLabelValues(vimID, region, service).Set(map[string]float64{"half-open": 1, "open": 2}[state])
}

// Login records a login to a VIM: ok, refused or failed.
func (m *Metrics) Login(vimID, outcome string) { m.vimLogins.WithLabelValues(vimID, outcome).Inc() }

// Forget drops the series of a VIM that is not called any more.
func (m *Metrics) Forget(vimID string) {
	of := prometheus.Labels{"vim": vimID}
	m.vimCalls.DeletePartialMatch(of)
	m.vimQueue.DeletePartialMatch(of)
	m.vimRefused.DeletePartialMatch(of)
	m.vimCircuit.DeletePartialMatch(of)
	m.vimLogins.DeletePartialMatch(of)
}

// Delivery records n attempts at deliveries of notifications; age is the time since their events.
func (m *Metrics) Delivery(outcome string, n int, age time.Duration) {
	m.deliveries.WithLabelValues(outcome).Add(float64(n))
	if outcome == "delivered" {
		m.lateness.Observe(age.Seconds())
	}
}
