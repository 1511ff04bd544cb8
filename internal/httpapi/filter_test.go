package httpapi

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestFilter(t *testing.T) {
	cond := func(op, path string, values ...string) lcm.Condition {
		return lcm.Condition{Op: op, Path: strings.Split(path, "|"), Values: values}
	}
	for _, c := range []struct {
		schema, filter string
		want           []lcm.Condition
		err            string
	}{
		{"VnfInstance", "", nil, ""},
		{"VnfInstance", "(eq,vnfInstanceName,a)", []lcm.Condition{cond("eq", "vnfInstanceName", "a")}, ""},
		{"VnfInstance", "(eq,vnfInstanceName,a);(neq,instantiationState,INSTANTIATED)",
			[]lcm.Condition{cond("eq", "vnfInstanceName", "a"), cond("neq", "instantiationState", "INSTANTIATED")}, ""},
		{"VnfInstance", " (eq,vnfInstanceName,a) ; (eq,vnfInstanceName,b); ", []lcm.Condition{cond("eq", "vnfInstanceName", "a"), cond("eq", "vnfInstanceName", "b")}, ""},
		{"VnfInstance", "(in,vnfInstanceName,a,'b,c','it''s (d)',e f)", []lcm.Condition{cond("in", "vnfInstanceName", "a", "b,c", "it's (d)", "e f")}, ""},
		{"VnfInstance", "(eq,vnfInstanceName,'')", []lcm.Condition{cond("eq", "vnfInstanceName", "")}, ""},
		{"VnfInstance", "(eq,vnfInstanceName,';')", []lcm.Condition{cond("eq", "vnfInstanceName", ";")}, ""},
		{"VnfInstance", "(eq,instantiationState,not_instantiated)", []lcm.Condition{cond("eq", "instantiationState", "NOT_INSTANTIATED")}, ""},
		{"VnfInstance", "(eq,id,ABCDEF01-1111-4111-8111-111111111111)", []lcm.Condition{cond("eq", "id", "abcdef01-1111-4111-8111-111111111111")}, ""},
		{"VnfInstance", "(eq,metadata/key,v)", []lcm.Condition{cond("eq", "metadata|key", "v")}, ""},
		{"VnfInstance", "(eq,metadata/a~1b~0c~ad~be/deep,v)", []lcm.Condition{cond("eq", "metadata|a/b~c,d@e|deep", "v")}, ""},
		{"VnfInstance", "(eq,metadata/@key,a)", []lcm.Condition{{Op: "eq", Path: []string{"metadata"}, Keys: true, Values: []string{"a"}}}, ""},
		{"VnfInstance", "(ncont,metadata/a~1b/@key,'a,b')", []lcm.Condition{{Op: "ncont", Path: []string{"metadata", "a/b"}, Keys: true, Values: []string{"a,b"}}}, ""},
		{"VnfInstance", "(eq,metadata/~bkey,a)", []lcm.Condition{cond("eq", "metadata|@key", "a")}, ""},
		{"VnfInstance", "(eq,metadata/~01,a)", []lcm.Condition{cond("eq", "metadata|~1", "a")}, ""},
		{"VnfLcmOpOcc", "(in,operationParams/@key,flavourId,other)", []lcm.Condition{{Op: "in", Path: []string{"operationParams"}, Keys: true, Values: []string{"flavourId", "other"}}}, ""},
		{"VnfLcmOpOcc", "(lte,stateEnteredTime,2020-12-21T06:52:06.120Z)", []lcm.Condition{cond("lte", "stateEnteredTime", "2020-12-21T06:52:06.12Z")}, ""},
		{"VnfInstance", "(gt,metadata/n,1)", []lcm.Condition{cond("gt", "metadata|n", "1")}, ""},
		{"VnfInstance", "(cont,instantiatedVnfInfo/vnfcResourceInfo/computeResource/resourceId,x,y)",
			[]lcm.Condition{cond("cont", "instantiatedVnfInfo|vnfcResourceInfo|computeResource|resourceId", "x", "y")}, ""},
		{"VnfInstance", "(gte,instantiatedVnfInfo/scaleStatus/scaleLevel,2)", []lcm.Condition{cond("gte", "instantiatedVnfInfo|scaleStatus|scaleLevel", "2")}, ""},
		{"VnfLcmOpOcc", "(gt,startTime,2020-12-21 06:52:06+01:00)", []lcm.Condition{cond("gt", "startTime", "2020-12-21T05:52:06Z")}, ""},
		{"VnfLcmOpOcc", "(eq,isAutomaticInvocation,True)", []lcm.Condition{cond("eq", "isAutomaticInvocation", "true")}, ""},
		{"VnfLcmOpOcc", "(in,operation,INSTANTIATE,TERMINATE)", []lcm.Condition{cond("in", "operation", "INSTANTIATE", "TERMINATE")}, ""},
		{"VnfPkgInfo", "(eq,softwareImages/checksum/algorithm,'sha-256')", []lcm.Condition{cond("eq", "softwareImages|checksum|algorithm", "sha-256")}, ""},
		{"VnfPkgInfo", "(eq,softwareImages/id,VDU1)", []lcm.Condition{cond("eq", "softwareImages|id", "VDU1")}, ""},
		{"VnfPkgInfo", "(eq,softwareImages/userMetadata/k,v)", []lcm.Condition{cond("eq", "softwareImages|userMetadata|k", "v")}, ""},

		{"VnfInstance", "(eq,vnfInstanceName,a,b)", nil, "Rule 'eq,vnfInstanceName,a,b' contains operator 'eq' which supports only one value, but multiple values 'a,b' are provided"},
		{"VnfInstance", "(eq,foo,1)", nil, "Rule 'eq,foo,1' contains invalid attribute name 'foo'"},
		{"VnfInstance", "(eq,_links/self,1)", nil, "Rule 'eq,_links/self,1' contains invalid attribute name '_links/self'"},
		{"VnfInstance", "(eq,metadata,1)", nil, "Rule 'eq,metadata,1' contains invalid attribute name 'metadata'"},
		{"VnfInstance", "(eq,vnfProvider/@key,1)", nil, "Rule 'eq,vnfProvider/@key,1' contains invalid attribute name 'vnfProvider/@key'"},
		{"VnfInstance", "(eq,instantiatedVnfInfo/@key,1)", nil, "Rule 'eq,instantiatedVnfInfo/@key,1' contains invalid attribute name 'instantiatedVnfInfo/@key'"},
		{"VnfInstance", "(eq,nothing/@key,1)", nil, "Rule 'eq,nothing/@key,1' contains invalid attribute name 'nothing/@key'"},
		{"VnfInstance", "(eq,@key,1)", nil, "Rule 'eq,@key,1' contains invalid attribute name '@key'"},
		{"VnfInstance", "(eq,metadata/@key/a,1)", nil, "Rule 'eq,metadata/@key/a,1' contains invalid attribute name 'metadata/@key/a'"},
		{"VnfInstance", "(eq,metadata/@name,1)", nil, "Rule 'eq,metadata/@name,1' contains invalid attribute name 'metadata/@name'"},
		{"VnfInstance", "(eq,metadata//a,1)", nil, "Rule 'eq,metadata//a,1' contains invalid attribute name 'metadata//a'"},
		{"VnfInstance", "(eq,vnfInstanceName,\xff)", nil, "The filter is not UTF-8."},
		{"VnfInstance", "(eq,instantiatedVnfInfo,1)", nil, "Rule 'eq,instantiatedVnfInfo,1' contains invalid attribute name 'instantiatedVnfInfo'"},
		{"VnfInstance", "(eq,id)", nil, "Failed to understand filter eq,id"},
		{"VnfInstance", "(like,id,1)", nil, "Failed to understand filter like,id,1"},
		{"VnfInstance", "(eq,id,)", nil, "Failed to understand filter eq,id,"},
		{"VnfInstance", "eq,id,1", nil, "Failed to understand filter eq,id,1"},
		{"VnfInstance", "(eq,id,1", nil, "Failed to understand filter eq,id,1"},
		{"VnfInstance", "(eq,instantiationState,X)", nil, "Rule 'eq,instantiationState,X' contains data type 'enum' with invalid value. It should be one of NOT_INSTANTIATED,INSTANTIATED"},
		{"VnfInstance", "(eq,id,x)", nil, "Rule 'eq,id,x' contains invalid data type for value 'x'. The data type should be 'uuid'"},
		{"VnfInstance", "(gt,instantiatedVnfInfo/scaleStatus/scaleLevel,V)", nil, "Rule 'gt,instantiatedVnfInfo/scaleStatus/scaleLevel,V' contains invalid data type for value 'V'. The data type should be 'number'"},
		{"VnfInstance", "(cont,instantiatedVnfInfo/scaleStatus/scaleLevel,1)", nil, "Rule 'cont,instantiatedVnfInfo/scaleStatus/scaleLevel,1' contains operator 'cont' which doesn't support data type 'number' for attribute 'instantiatedVnfInfo/scaleStatus/scaleLevel'"},
		{"VnfLcmOpOcc", "(gt,startTime,yesterday)", nil, "Rule 'gt,startTime,yesterday' contains invalid data type for value 'yesterday'. The data type should be 'datetime'"},
		{"VnfInstance", "(eq,vnfInstanceName,a'b)", nil, "Rule 'eq,vnfInstanceName,a'b' value doesn't have single quotes in pairs"},
		{"VnfInstance", "(eq,vnfInstanceName,a'b'c)", nil, "Rule 'eq,vnfInstanceName,a'b'c' value must be enclosed in single quotes when it contains either of comma, single quote, closing bracket"},
		{"VnfInstance", "(eq,vnfInstanceName,a)b)", nil, "Rule 'eq,vnfInstanceName,a)b' value must be enclosed in single quotes when it contains either of comma, single quote, closing bracket"},
		{"VnfInstance", "(eq,vnfInstanceName,'a'b')", nil, "Rule 'eq,vnfInstanceName,'a'b'' value doesn't have single quotes in pairs"},
		{"VnfInstance", "(eq,vnfInstanceName,'a'x)", nil, "Rule 'eq,vnfInstanceName,'a'x' value doesn't have single quotes in pairs"},
		{"VnfInstance", "(eq,vnfInstanceName,\x00)", nil, "The filter holds the character U+0000."},
	} {
		got, err := parseFilter(c.filter, schemas()[c.schema])
		text := ""
		if err != nil {
			text = err.Error()
			if !lcm.Is(err, lcm.KindInvalid) {
				t.Errorf("%s: kind %s", c.filter, lcm.KindOf(err))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || text != c.err {
			t.Errorf("%s:\n%s\n got %s\nwant %s", c.filter, diff, text, c.err)
		}
	}
	for _, long := range []string{
		strings.Repeat("(eq,vnfInstanceName,a);", 65), "(in,vnfInstanceName" + strings.Repeat(",a", 257) + ")", "(eq,vnfInstanceName," + strings.Repeat("a", 17000) + ")",
		"(eq,metadata" + strings.Repeat("/a", 17) + ",1)",
	} {
		if _, err := parseFilter(long, schemas()["VnfInstance"]); !lcm.Is(err, lcm.KindInvalid) || len(err.Error()) > 1000 {
			t.Errorf("%.40s…: %v", long, err)
		}
	}
}

// Any values, quoted, come back.
func TestFilterQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[a-z ',;()\\é~]{0,12}`), 1, 5).Draw(t, "values")
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
		}
		filter := "(in,vnfInstanceName," + strings.Join(quoted, ",") + ")"
		got, err := parseFilter(filter+";"+filter, schemas()["VnfInstance"])
		if err != nil || len(got) != 2 || !cmp.Equal(got[0].Values, values) || !cmp.Equal(got[1], got[0]) {
			t.Fatalf("%s: %+v, %v", filter, got, err)
		}
	})
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"(eq,id,11111111-1111-4111-8111-111111111111)", "(in,vnfInstanceName,'a,b','it''s')", "(gt,metadata/a~1b,1);(eq,vnfdId,x)",
		"((", "('", "(eq,metadata/@key,1)", ";;", "(eq,vnfInstanceName,a)b)", "(cont,instantiatedVnfInfo/vnfcResourceInfo/id,'')",
		"(lte,instantiatedVnfInfo/scaleStatus/scaleLevel,1e5)", "(cont,metadata/a~bb/@key,'x)')",
	} {
		f.Add(seed)
	}
	resource := schemas()["VnfInstance"]
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseFilter(s, resource)
		if err != nil {
			if !lcm.Is(err, lcm.KindInvalid) || err.Error() == "" {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		for _, c := range got {
			if len(c.Path) == 0 || len(c.Values) == 0 || resource.at(c.Path) == nil {
				t.Fatalf("%q: %+v", s, c)
			}
			// What was understood, written anew, is understood alike.
			values := make([]string, len(c.Values))
			for i, v := range c.Values {
				values[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
			}
			path := make([]string, 0, len(c.Path)+1)
			for _, p := range c.Path {
				path = append(path, strings.NewReplacer("~", "~0", "/", "~1", ",", "~a", "@", "~b").Replace(p))
			}
			if c.Keys {
				path = append(path, "@key")
			}
			text := "(" + c.Op + "," + strings.Join(path, "/") + "," + strings.Join(values, ",") + ")"
			if strings.ContainsAny(strings.Join(path, ""), "')") || len(text) > maxFilter || !utf8.ValidString(text) {
				continue // a name with a bracket or a quote has no unambiguous form
			}
			again, err := parseFilter(text, resource)
			if err != nil || !cmp.Equal(again, []lcm.Condition{c}) {
				t.Fatalf("%q → %q: %+v, %v", s, text, again, err)
			}
		}
	})
}

func TestRawSemicolon(t *testing.T) {
	for _, q := range []string{
		"filter=(eq,vnfInstanceName,a);(neq,vnfInstanceName,b)",
		"filter=" + url.QueryEscape("(eq,vnfInstanceName,a);(neq,vnfInstanceName,b)"),
		"filter=(eq,vnfInstanceName,a)%3B(neq,vnfInstanceName,b)",
	} {
		f := newFake()
		res := ask(t, f.handler(Config{}), "GET", vi+"?"+q, "")
		if res.StatusCode != 200 || len(f.query.Filter) != 2 || f.query.Filter[1].Op != "neq" {
			t.Errorf("%s: %d %+v", q, res.StatusCode, f.query)
		}
	}
}
