package metrics

import "github.com/prometheus/client_golang/prometheus"

// drift are the metrics of the comparison of VNF instances with what their VIMs have.
type drift struct {
	verified  *prometheus.CounterVec
	differing *prometheus.GaugeVec
}

func newDrift(r prometheus.Registerer) drift {
	d := drift{
		verified: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vnfm_verifications_total", Help: "VNF instances compared with what their VIMs have, by outcome: same, differs, failed.",
		}, []string{"outcome"}),
		differing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vnfm_instance_drift", Help: "VNF instances that were last seen to differ from their record, by VIM; there while verify.interval is set.",
		}, []string{"vim"}),
	}
	r.MustRegister(d.verified, d.differing)
	return d
}

// Verified records the outcome of one comparison.
func (m *Metrics) Verified(outcome string) { m.drift.verified.WithLabelValues(outcome).Inc() }

// Differing sets how many instances differ, by VIM.
func (m *Metrics) Differing(byVim map[string]int) {
	m.drift.differing.Reset()
	for vim, count := range byVim {
		m.drift.differing.WithLabelValues(vim).Set(float64(count))
	}
}
