package config

import "time"

// Config is the whole configuration. Each field's doc tag is what `vnfm config print` says about it.
type Config struct {
	Listen      string   `yaml:"listen" doc:"Address and port the API listens on. Beyond loopback it needs authentication."`
	EndpointURL string   `yaml:"endpoint_url" doc:"Base of every link the API hands out, as clients reach it. Empty: made from listen and tls."`
	Roles       []string `yaml:"roles" doc:"What this process does: api, worker or both."`

	Database   Database   `yaml:"database" doc:"The PostgreSQL that holds everything."`
	Log        Log        `yaml:"log" doc:"Logging, to standard error."`
	Auth       Auth       `yaml:"auth" doc:"Who may call the API."`
	TLS        TLS        `yaml:"tls" doc:"TLS of the API's listener."`
	Secrets    Secrets    `yaml:"secrets" doc:"Sealing of credentials at rest."`
	Openstack  Openstack  `yaml:"openstack" doc:"OpenStack VIMs."`
	Kubernetes Kubernetes `yaml:"kubernetes" doc:"Kubernetes VIMs."`
	VIM        VIM        `yaml:"vim" doc:"Registered VIMs of every kind."`
	VNFPackage VNFPackage `yaml:"vnf_package" doc:"VNF packages."`
	Engine     Engine     `yaml:"engine" doc:"Execution of lifecycle operations."`
	Verify     Verify     `yaml:"verify" doc:"Comparison of what is recorded of VNF instances with what their VIMs have."`
	Mgmt       Mgmt       `yaml:"mgmt" doc:"Management drivers."`
	Notify     Notify     `yaml:"notify" doc:"Notifications to subscribers."`
	NFVO       NFVO       `yaml:"nfvo" doc:"The NFV orchestrator, for grants and packages."`
	Paging     Paging     `yaml:"paging" doc:"Paging of lists."`
	Limits     Limits     `yaml:"limits" doc:"What a request may cost."`
	Audit      Audit      `yaml:"audit" doc:"The audit trail: who did what."`
	Debug      Debug      `yaml:"debug" doc:"Looking inside."`
}

// Database says where PostgreSQL is.
type Database struct {
	URL        Secret `yaml:"url" doc:"postgres://user:password@host:5432/name. Empty: a private PostgreSQL in private_dir."`
	PrivateDir string `yaml:"private_dir" doc:"Folder of the private PostgreSQL (used when url is empty)."`
	MaxConns   int    `yaml:"max_conns" doc:"Connections of this process to the database at most." min:"4" max:"10000"`
	Migrate    bool   `yaml:"migrate" doc:"Bring the schema up to date before serving."`
}

// Private tells whether the database is the private PostgreSQL.
func (d Database) Private() bool { return d.URL == "" }

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level" doc:"Least level that is logged." oneof:"debug,info,warn,error"`
	Format string `yaml:"format" doc:"Form of a log line." oneof:"text,json"`
}

// Auth says how callers prove who they are.
type Auth struct {
	Mode     string            `yaml:"mode" doc:"How callers prove who they are, if in one way; none is for loopback only." oneof:"none,basic,bearer,keystone,mtls"`
	Modes    []string          `yaml:"modes" doc:"The ways in which callers may prove who they are, if there are several: any of basic, bearer, keystone and mtls. Empty: mode."`
	Roles    map[string]string `yaml:"roles" doc:"Modes basic and mtls: role by user name, one of reader, operator and admin. Users who are not here are readers; when nobody is here, everybody is admin."`
	Projects map[string]string `yaml:"projects" doc:"Modes basic and mtls: project by user name. Users who are not here are of the project default."`
	Basic    AuthBasic         `yaml:"basic" doc:"Mode basic: HTTP basic authentication."`
	Bearer   AuthBearer        `yaml:"bearer" doc:"Mode bearer: OAuth 2.0 access tokens that are JSON Web Tokens."`
	Keystone AuthKeystone      `yaml:"keystone" doc:"Mode keystone: X-Auth-Token, validated by OpenStack's Keystone; without mode bearer also as Authorization: Bearer."`
	MTLS     AuthMTLS          `yaml:"mtls" doc:"Mode mtls: client certificates of tls.client_ca."`
}

// Ways returns the ways of authentication: modes or, when there are none, mode.
func (a Auth) Ways() []string {
	if len(a.Modes) > 0 {
		return a.Modes
	}
	return []string{a.Mode}
}

// RoleOf returns the role of a user of the modes basic and mtls.
func (a Auth) RoleOf(user string) string {
	role, ok := a.Roles[user]
	switch {
	case ok:
		return role
	case len(a.Roles) > 0:
		return "reader"
	default:
		return "admin"
	}
}

// ProjectOf returns the project of a user of the modes basic and mtls.
func (a Auth) ProjectOf(user string) string {
	if project, ok := a.Projects[user]; ok {
		return project
	}
	return "default"
}

// AuthBasic lists users.
type AuthBasic struct {
	Users map[string]Secret `yaml:"users" doc:"Password, or its bcrypt hash ($2b$…), by user name."`
}

// AuthBearer names the issuer of access tokens and says what they mean.
type AuthBearer struct {
	Issuer       string            `yaml:"issuer" doc:"The tokens' issuer (iss), a URL."`
	Audience     string            `yaml:"audience" doc:"What tokens must be meant for (aud). Empty: anything."`
	JWKSURL      string            `yaml:"jwks_url" doc:"Where the issuer's keys are. Empty: as its /.well-known/openid-configuration says."`
	CAFile       string            `yaml:"ca_file" doc:"PEM file of the CA of the issuer's TLS. Empty: the system's."`
	Timeout      time.Duration     `yaml:"timeout" doc:"Wait for the issuer's answer." min:"1s" max:"5m"`
	ClockSkew    time.Duration     `yaml:"clock_skew" doc:"How far the issuer's clock may be from ours." min:"0s" max:"10m"`
	Algorithms   []string          `yaml:"algorithms" doc:"Signatures that are taken; those of a shared key never are."`
	Scopes       map[string]string `yaml:"scopes" doc:"Role (reader, operator or admin) by the token's scope; of several the highest counts."`
	UserClaim    string            `yaml:"user_claim" doc:"Claim that names the user; a.b is b within a."`
	ProjectClaim string            `yaml:"project_claim" doc:"Claim that names the project."`
	Project      string            `yaml:"project" doc:"Project of tokens without that claim. Empty: they are refused, unless their role is admin."`
}

// AuthMTLS maps certificates to users.
type AuthMTLS struct {
	Users map[string]string `yaml:"users" doc:"User name by what is in the certificate: dns:, email:, uri: or ip: and an alternative name, cn: and the common name, or subject: and the whole subject (subject:CN=nfvo,O=Operator)."`
}

// AuthKeystone names the Keystone that validates tokens and the user we ask it as.
type AuthKeystone struct {
	AuthURL           string        `yaml:"auth_url" doc:"Keystone's URL, such as https://host/identity/v3."`
	Username          string        `yaml:"username" doc:"User who validates tokens."`
	Password          Secret        `yaml:"password" doc:"That user's password."`
	UserDomainName    string        `yaml:"user_domain_name" doc:"That user's domain."`
	ProjectName       string        `yaml:"project_name" doc:"Project to ask in."`
	ProjectDomainName string        `yaml:"project_domain_name" doc:"That project's domain."`
	CAFile            string        `yaml:"ca_file" doc:"PEM file of the CA of Keystone's TLS. Empty: the system's."`
	Timeout           time.Duration `yaml:"timeout" doc:"Wait for Keystone's answer." min:"1s" max:"5m"`
	// Roles has no order among its keys: of several roles of a token the highest counts.
	Roles map[string]string `yaml:"roles" doc:"Role (reader, operator or admin) by Keystone's role."`
}

// TLS is the listener's certificate.
type TLS struct {
	Cert     string `yaml:"cert" doc:"PEM file of the server's certificate chain. Empty: plain HTTP."`
	Key      string `yaml:"key" doc:"PEM file of its key."`
	ClientCA string `yaml:"client_ca" doc:"PEM file of the CAs that client certificates must come from. Empty: none are asked for. With auth mode mtls beside others a client may do without."`
	// Reload is a matter of polling: files that are mounted into containers change without a signal.
	Reload time.Duration `yaml:"reload" doc:"Pause between looks at whether these files have changed." min:"100ms"`
}

// Secrets names the key file.
type Secrets struct {
	KeyFile string `yaml:"key_file" doc:"Key file that credentials are sealed under, one \"id:base64\" a line, the last being current. With the private PostgreSQL it is made (mode 0600) on first start, by default in private_dir; with database.url it must be given."`
}

// Openstack holds the waits and the budget of OpenStack VIMs.
type Openstack struct {
	StackTimeout      time.Duration `yaml:"stack_timeout" doc:"Wait for a Heat stack to be created, updated or deleted." min:"1s"`
	PollMin           time.Duration `yaml:"poll_min" doc:"Shortest pause between looks at a stack." min:"10ms"`
	PollMax           time.Duration `yaml:"poll_max" doc:"Longest pause between looks at a stack." min:"10ms"`
	ImageTimeout      time.Duration `yaml:"image_timeout" doc:"Wait for an image to become active in Glance." min:"1s"`
	UserDataTimeout   time.Duration `yaml:"user_data_timeout" doc:"Time a package's user data script may take." min:"1s"`
	Python            string        `yaml:"python" doc:"Python interpreter for user data scripts. Empty: /usr/bin/python3, else the first on the PATH."`
	UserDataUser      string        `yaml:"user_data_user" doc:"User that scripts run as when the server runs as root."`
	RequestsPerSecond float64       `yaml:"requests_per_second" doc:"Requests of this process to one VIM per second at most, from 1; 0 is no limit. A VIM's own extra.requests_per_second goes before it." min:"0"`
	MaxConcurrent     int           `yaml:"max_concurrent" doc:"Requests of this process to one VIM at the same time at most. A VIM's own extra.max_concurrent_requests goes before it." min:"1"`
	RequestTimeout    time.Duration `yaml:"request_timeout" doc:"Wait for one answer of a VIM." min:"1s"`
	ConnectTimeout    time.Duration `yaml:"connect_timeout" doc:"Wait for a connection to a VIM." min:"100ms"`
	BreakerFailures   int           `yaml:"breaker_failures" doc:"Failures on end (no connection, a broken one, HTTP status 500 and more) after which a service of a VIM is not called for a while; one call that waits in vain for a timeout is enough when nothing else is answered meanwhile." min:"1"`
	BreakerOpenFor    time.Duration `yaml:"breaker_open_for" doc:"How long such a service is not called; then one call is made to see." min:"100ms"`
	LoginPause        time.Duration `yaml:"login_pause" doc:"How long credentials that a VIM has refused are not tried again, lest the account be locked; a changed VIM is tried at once." min:"1s"`
}

// VIM is how registered VIMs are watched.
type VIM struct {
	ProbeInterval time.Duration `yaml:"probe_interval" doc:"Pause between looks at whether a registered VIM can be reached." min:"1s"`
	ProbeTimeout  time.Duration `yaml:"probe_timeout" doc:"Wait for a VIM's answer to such a look." min:"100ms"`
	AllowFake     bool          `yaml:"allow_fake" doc:"Accept VIMs of type fake, which do nothing at once: for tests and measurements."`
}

// VNFPackage holds the limits of packages and where they may be fetched from.
type VNFPackage struct {
	SizeCap     Bytes    `yaml:"size_cap" doc:"Size of a package at most." min:"1"`
	UnpackedCap Bytes    `yaml:"unpacked_cap" doc:"Size of a package's content, unpacked, at most." min:"1"`
	MaxEntries  int      `yaml:"max_entries" doc:"Files in a package at most." min:"1"`
	URIHosts    []string `yaml:"uri_hosts" doc:"The only hosts that upload_from_uri may fetch from: a name, or .domain for all below it. Empty: any."`
	URIAllow    []string `yaml:"uri_allow" doc:"CIDRs or addresses that upload_from_uri may reach although they are closed by default (link-local, metadata services)."`
}

// Engine is how operations are run.
type Engine struct {
	MaxWorkers       int           `yaml:"max_workers" doc:"Operation steps that run at the same time in this process at most. One VIM that answers gets all that the others leave but a quarter; one that does not, or while another one waits, half of what they leave." min:"1" max:"10000"`
	FetchCooldown    time.Duration `yaml:"fetch_cooldown" doc:"Least pause between two looks for work." min:"1ms"`
	FetchPoll        time.Duration `yaml:"fetch_poll" doc:"Pause between looks for work when nothing announced any." min:"1ms"`
	TakeoverInterval time.Duration `yaml:"takeover_interval" doc:"Pause between looks at whether other nodes live." min:"100ms"`
	JobRetention     time.Duration `yaml:"job_retention" doc:"How long finished entries of the job queue are kept; operations themselves stay." min:"1s"`
	StopTimeout      time.Duration `yaml:"stop_timeout" doc:"Time that running steps are given to end at shutdown; another node, or the next start, resumes what is cut." min:"0s"`
}

// Mgmt says which management drivers there are.
type Mgmt struct {
	Drivers map[string]string `yaml:"drivers" doc:"Built-in driver by the name that VNFDs call it by."`
}

// Paging is the size of a page.
type Paging struct {
	PageSize int `yaml:"page_size" doc:"Entries on one page of a list." min:"1" max:"10000"`
}

// Limits bound a request.
type Limits struct {
	Body          Bytes         `yaml:"body" doc:"Size of a request's JSON body at most." min:"1024"`
	Header        Bytes         `yaml:"header" doc:"Size of a request's header at most." min:"4096" max:"16777216"`
	HeaderTimeout time.Duration `yaml:"header_timeout" doc:"Time that a request's header may take to come in." min:"100ms"`
	BodyTimeout   time.Duration `yaml:"body_timeout" doc:"Time that a request's JSON body may take to come in." min:"100ms"`
	IdleTimeout   time.Duration `yaml:"idle_timeout" doc:"Time that an idle connection is kept." min:"1s"`
	MaxConcurrent int           `yaml:"max_concurrent" doc:"Requests at the same time at most; more are answered 503." min:"1"`
	Proxies       []string      `yaml:"proxies" doc:"CIDRs or addresses of reverse proxies whose X-Forwarded-For names the caller, for rates by address and the audit trail."`

	RequestsPerSecond    float64       `yaml:"requests_per_second" doc:"Requests of one user (of an address, when there is no user) per second at most; more are answered 429. 0 is no limit." min:"0"`
	Burst                int           `yaml:"burst" doc:"Requests that a user may make at once before that limit counts. 0: those of one second." min:"0"`
	IdempotencyRetention time.Duration `yaml:"idempotency_retention" doc:"How long an Idempotency-Key is remembered." min:"1m"`
}

// Audit is how long is remembered who did what.
type Audit struct {
	Retention time.Duration `yaml:"retention" doc:"How long entries of the audit trail are kept. 0: for ever." min:"0s"`
}

// Debug opens ways to look inside.
type Debug struct {
	Listen string `yaml:"listen" doc:"Loopback address and port of Go's profiler (/debug/pprof/). Empty: none."`
}
