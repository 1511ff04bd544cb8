package config

import "time"

// Verify is the comparison, from time to time, of what is recorded of VNF instances with what their VIMs have.
type Verify struct {
	Interval  time.Duration `yaml:"interval" doc:"How long after an instance was compared with what its VIM has it is compared again; one that has been changed is within minutes. 0: only when somebody asks (vnfm vnflcm verify)." min:"0s"`
	Parallel  int           `yaml:"parallel" doc:"Instances of one VIM that are compared at a time at most, by all nodes together; and those that each node compares at a time because somebody asks, whose others wait." min:"1" max:"100"`
	PerSecond float64       `yaml:"per_second" doc:"Instances whose comparison is begun in a second at most, by all nodes together." min:"0.01" max:"1000"`
	Timeout   time.Duration `yaml:"timeout" doc:"Time that the comparison of one instance may take, also when somebody asks." min:"1s"`
}

func defaultVerify() Verify {
	return Verify{Parallel: 2, PerSecond: 5, Timeout: 2 * time.Minute}
}

// checkVerify refuses intervals in which a VIM would do nothing else.
func (c *Config) checkVerify(bad report) {
	if i := c.Verify.Interval; i > 0 && i < time.Second {
		bad("verify.interval", "%s is shorter than a second", i)
	}
}
