package httpapi

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// versionForm is what a version of an API looks like (SOL013 v2.6.1 §9.1).
var versionForm = regexp.MustCompile(`^([1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-impl:[\x21-\x7e]+)?$`)

// versioned answers the version of an API, and looks at the one that is asked for (SOL013 v2.6.1 §9.2): none is any, and
// all of our major version are served. Which versions there are may be asked with any.
func (s *server) versioned(served string) func(http.Handler) http.Handler {
	major, _, _ := strings.Cut(served, ".")
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Version", served)
			if given := r.Header.Values("Version"); len(given) > 0 {
				parts := versionForm.FindStringSubmatch(strings.TrimSpace(given[0]))
				switch {
				case len(given) > 1 || parts == nil:
					s.fail(w, r, lcm.Errorf(lcm.KindInvalid, "Malformed Version header %s; it should be like %s.",
						clip(strings.Join(given, ", ")), served))
					return
				case parts[1] != major && !strings.HasSuffix(r.URL.Path, "/api_versions"):
					s.fail(w, r, lcm.Errorf(lcm.KindNotAccepted, "Version %s of this API is not served here; %s is.",
						clip(given[0]), served))
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}
