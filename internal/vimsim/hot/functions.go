package hot

import (
	"crypto/md5"  //nolint:gosec // the digest function of HOT offers it
	"crypto/sha1" //nolint:gosec // the digest function of HOT offers it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Resolver evaluates intrinsic functions against one stack.
type Resolver struct {
	// Template gives the conditions; it may be nil.
	Template *Template
	// Params are the typed parameters, pseudo parameters included.
	Params map[string]any
	// Files are the stack's files by name, for get_file.
	Files map[string]string
	// GetResource returns the reference id of a resource of the stack.
	GetResource func(name string) (any, error)
	// GetAttr returns an attribute of a resource; attr is empty for all of
	// them, path holds the remaining components, already resolved.
	GetAttr func(name, attr string, path []any) (any, error)
}

type function func(r *Resolver, arg any) (any, error)

var functions map[string]function

func init() {
	functions = map[string]function{
		"get_param": fnGetParam, "get_resource": fnGetResource, "get_attr": fnGetAttr, "get_file": fnGetFile,
		"str_replace": fnStrReplace, "str_replace_strict": fnStrReplaceStrict, "str_replace_vstrict": fnStrReplaceStrict,
		"repeat": fnRepeat, "list_join": fnListJoin, "str_split": fnStrSplit, "map_merge": fnMapMerge,
		"map_replace": fnMapReplace, "digest": fnDigest, "if": fnIf, "list_concat": fnListConcat,
		"list_concat_unique": fnListConcatUnique, "contains": fnContains, "filter": fnFilter,
		"yaql": unsupported, "make_url": unsupported, "resource_facade": unsupported,
	}
}

func asFunction(m map[string]any) (string, any, bool) {
	if len(m) != 1 {
		return "", nil, false
	}
	for k, v := range m {
		_, ok := functions[k]
		return k, v, ok
	}
	return "", nil, false
}

// Select walks into maps and lists by path; ok is false when a step is missing.
func Select(v any, path []any) (any, bool) {
	for _, p := range path {
		switch t := v.(type) {
		case map[string]any:
			x, ok := t[String(p)]
			if !ok {
				return nil, false
			}
			v = x
		case []any:
			i, err := strconv.Atoi(String(p))
			if err != nil {
				return nil, false
			}
			if i < 0 {
				i += len(t)
			}
			if i < 0 || i >= len(t) {
				return nil, false
			}
			v = t[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Resolve returns v with every intrinsic function replaced by its result.
func (r *Resolver) Resolve(v any) (any, error) {
	switch t := v.(type) {
	case map[string]any:
		if name, arg, ok := asFunction(t); ok {
			return functions[name](r, arg)
		}
		m := make(map[string]any, len(t))
		for k, x := range t {
			y, err := r.Resolve(x)
			if err != nil {
				return nil, err
			}
			m[k] = y
		}
		return m, nil
	case []any:
		l := make([]any, 0, len(t))
		for _, x := range t {
			y, err := r.Resolve(x)
			if err != nil {
				return nil, err
			}
			if y == omit {
				continue
			}
			l = append(l, y)
		}
		return l, nil
	}
	return v, nil
}

// omit marks a value that an if without an else leaves out.
var omit any = &struct{ omitted bool }{true}

// Properties resolves a property map; values left out by a two-armed if are
// dropped.
func (r *Resolver) Properties(props map[string]any) (map[string]any, error) {
	v, err := r.Resolve(map[string]any{"p": props})
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)["p"].(map[string]any)
	return dropOmitted(m), nil
}

func dropOmitted(m map[string]any) map[string]any {
	for k, v := range m {
		if v == omit {
			delete(m, k)
		} else if mm, ok := v.(map[string]any); ok {
			m[k] = dropOmitted(mm)
		}
	}
	if m == nil {
		m = map[string]any{}
	}
	return m
}

func badArgs(format string, args ...any) error { return Invalid(nil, format, args...) }

func unsupported(*Resolver, any) (any, error) {
	return nil, badArgs("The function is not supported by this simulator.")
}

func fnGetParam(r *Resolver, arg any) (any, error) {
	arg, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	var path []any
	switch t := arg.(type) {
	case string:
		path = []any{t}
	case []any:
		path = t
	}
	if len(path) == 0 {
		return nil, badArgs(`Argument to "get_param" must be string or list`)
	}
	name, ok := path[0].(string)
	if !ok {
		return nil, badArgs(`Parameter name in "get_param" must be string`)
	}
	v, ok := r.Params[name]
	if !ok {
		return nil, errf("UserParameterMissing", "The Parameter (%s) was not provided.", name)
	}
	got, ok := Select(v, path[1:])
	if !ok {
		return "", nil
	}
	return got, nil
}

func fnGetResource(r *Resolver, arg any) (any, error) {
	name, ok := arg.(string)
	if !ok || r.GetResource == nil {
		return nil, badArgs(`Argument to "get_resource" must be a resource name`)
	}
	return r.GetResource(name)
}

func fnGetAttr(r *Resolver, arg any) (any, error) {
	l, ok := arg.([]any)
	if !ok || len(l) == 0 || r.GetAttr == nil {
		return nil, badArgs(`Argument to "get_attr" must be a list`)
	}
	v, err := r.Resolve(l)
	if err != nil {
		return nil, err
	}
	l, _ = v.([]any)
	attr := ""
	var path []any
	if len(l) > 1 {
		attr, path = String(l[1]), l[2:]
	}
	return r.GetAttr(String(l[0]), attr, path)
}

func fnGetFile(r *Resolver, arg any) (any, error) {
	arg, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	name, ok := arg.(string)
	if !ok {
		return nil, badArgs(`Argument to "get_file" must be a string`)
	}
	text, ok := r.Files[name]
	if !ok {
		return nil, badArgs(`No content found in the "files" section for get_file path: %s`, name)
	}
	return text, nil
}

func strReplace(r *Resolver, arg any, strict bool) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, badArgs(`Arguments to "str_replace" must be a map`)
	}
	params, ok := m["params"].(map[string]any)
	if !ok {
		return nil, badArgs(`"str_replace" params must be a map`)
	}
	if m["template"] == nil {
		return nil, badArgs(`"str_replace" template must be a string`)
	}
	text := String(m["template"])
	// The longest placeholder wins where two start at one place.
	keys := slices.SortedFunc(maps.Keys(params), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(keys))
	var missing []string
	for _, k := range keys {
		if k == "" {
			continue
		}
		if !strings.Contains(text, k) {
			missing = append(missing, k)
		}
		pairs = append(pairs, k, String(params[k]))
	}
	if strict && len(missing) > 0 {
		slices.Sort(missing)
		return nil, badArgs("The following params were not found in the template: %s", strings.Join(missing, ","))
	}
	return strings.NewReplacer(pairs...).Replace(text), nil
}

func fnStrReplace(r *Resolver, arg any) (any, error)       { return strReplace(r, arg, false) }
func fnStrReplaceStrict(r *Resolver, arg any) (any, error) { return strReplace(r, arg, true) }

// fnRepeat expands its template for each combination of the for_each lists.
func fnRepeat(r *Resolver, arg any) (any, error) {
	m, ok := arg.(map[string]any)
	if !ok {
		return nil, badArgs(`Arguments to "repeat" must be a map`)
	}
	feV, err := r.Resolve(m["for_each"])
	if err != nil {
		return nil, err
	}
	fe, ok := feV.(map[string]any)
	if !ok || len(fe) == 0 {
		return nil, badArgs(`The "for_each" argument to "repeat" must contain a map`)
	}
	vars := slices.Sorted(maps.Keys(fe))
	lists := make([][]any, len(vars))
	for i, k := range vars {
		switch l := fe[k].(type) {
		case []any:
			lists[i] = l
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(l)) {
				lists[i] = append(lists[i], key)
			}
		case nil:
		default:
			return nil, badArgs(`The values of the "for_each" argument to "repeat" must be lists`)
		}
	}
	out := []any{}
	emit := func(vals []any) error {
		v := m["template"]
		for i, k := range vars {
			v = substitute(v, k, vals[i])
		}
		v, err := r.Resolve(v)
		if err == nil && v != omit {
			out = append(out, v)
		}
		return err
	}
	if p, given := m["permutations"]; given && !truthy(p) {
		for i := range lists[0] {
			vals := make([]any, len(vars))
			for j := range lists {
				if len(lists[j]) != len(lists[0]) {
					return nil, badArgs("For repeat, the length of for_each values should be equal if no permutations.")
				}
				vals[j] = lists[j][i]
			}
			if err := emit(vals); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	vals := make([]any, len(vars))
	var rec func(int) error
	rec = func(i int) error {
		if i == len(vars) {
			return emit(vals)
		}
		for _, x := range lists[i] {
			vals[i] = x
			if err := rec(i + 1); err != nil {
				return err
			}
			if len(out) > maxNodes {
				return badArgs("repeat yields too many items")
			}
		}
		return nil
	}
	return out, rec(0)
}

func substitute(v any, key string, val any) any {
	switch t := v.(type) {
	case string:
		if t == key {
			return val
		}
		return strings.ReplaceAll(t, key, String(val))
	case map[string]any:
		m := make(map[string]any, len(t))
		for k, x := range t {
			m[strings.ReplaceAll(k, key, String(val))] = substitute(x, key, val)
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, x := range t {
			l[i] = substitute(x, key, val)
		}
		return l
	}
	return v
}

// Substitute replaces the text key in every string of v, as ResourceGroup does
// with its index variable.
func Substitute(v any, key string, val any) any { return substitute(v, key, val) }

func fnListJoin(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok || len(l) < 2 {
		return nil, badArgs(`Incorrect arguments to "list_join" should be: ["<delimiter>", ["<string1>", "<string2>"]]`)
	}
	delim, ok := l[0].(string)
	if !ok {
		return nil, badArgs(`"list_join" delimiter must be a string`)
	}
	var parts []string
	for _, x := range l[1:] {
		if x == nil {
			continue
		}
		items, ok := x.([]any)
		if !ok {
			return nil, badArgs(`"list_join" must operate on a list`)
		}
		for _, it := range items {
			parts = append(parts, String(it))
		}
	}
	return strings.Join(parts, delim), nil
}

func fnStrSplit(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok || len(l) < 2 || len(l) > 3 {
		return nil, badArgs(`Incorrect arguments to "str_split" should be: [[delimiter], "<string>", <index>]`)
	}
	if l[1] == nil {
		return nil, nil
	}
	parts := []any{}
	for _, s := range strings.Split(String(l[1]), String(l[0])) {
		parts = append(parts, s)
	}
	if len(l) == 3 {
		x, ok := Select(parts, l[2:])
		if !ok {
			return nil, badArgs(`Incorrect index to "str_split" should be between 0 and %d`, len(parts)-1)
		}
		return x, nil
	}
	return parts, nil
}

func fnMapMerge(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok {
		return nil, badArgs(`Incorrect arguments to "map_merge" should be a list of maps`)
	}
	out := map[string]any{}
	for _, x := range l {
		if x == nil || x == omit {
			continue
		}
		m, ok := x.(map[string]any)
		if !ok {
			return nil, badArgs("Incorrect arguments: Items to merge must be maps.")
		}
		maps.Copy(out, m)
	}
	return out, nil
}

func fnMapReplace(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		return nil, badArgs(`Incorrect arguments to "map_replace" should be: [{map}, {keys: {}, values: {}}]`)
	}
	in, ok1 := l[0].(map[string]any)
	rep, ok2 := l[1].(map[string]any)
	if !ok1 || !ok2 {
		return nil, badArgs(`Incorrect arguments to "map_replace": both must be maps`)
	}
	keys, _ := rep["keys"].(map[string]any)
	vals, _ := rep["values"].(map[string]any)
	out := make(map[string]any, len(in))
	for k, x := range in {
		nk := k
		if y, ok := keys[k]; ok {
			nk = String(y)
			if _, clash := in[nk]; clash && nk != k {
				return nil, badArgs("key replacement %s collides with a key in the input map", nk)
			}
		}
		switch x.(type) {
		case map[string]any, []any:
		default:
			if y, ok := vals[String(x)]; ok {
				x = y
			}
		}
		out[nk] = x
	}
	return out, nil
}

func fnDigest(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		return nil, badArgs(`Function "digest" usage: ["<algorithm>", "<value>"]`)
	}
	data := []byte(String(l[1]))
	switch strings.ToLower(String(l[0])) {
	case "md5":
		s := md5.Sum(data) //nolint:gosec // asked for by the template
		return hex.EncodeToString(s[:]), nil
	case "sha1":
		s := sha1.Sum(data) //nolint:gosec // asked for by the template
		return hex.EncodeToString(s[:]), nil
	case "sha224":
		s := sha256.Sum224(data)
		return hex.EncodeToString(s[:]), nil
	case "sha256":
		s := sha256.Sum256(data)
		return hex.EncodeToString(s[:]), nil
	case "sha384":
		s := sha512.Sum384(data)
		return hex.EncodeToString(s[:]), nil
	case "sha512":
		s := sha512.Sum512(data)
		return hex.EncodeToString(s[:]), nil
	}
	return nil, badArgs("Algorithm must be one of ('md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512')")
}

func fnListConcat(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok {
		return nil, badArgs(`Incorrect arguments to "list_concat" should be a list of lists`)
	}
	out := []any{}
	for _, x := range l {
		if x == nil {
			continue
		}
		items, ok := x.([]any)
		if !ok {
			return nil, badArgs("Incorrect arguments: Items to concat must be lists.")
		}
		out = append(out, items...)
	}
	return out, nil
}

func fnListConcatUnique(r *Resolver, arg any) (any, error) {
	v, err := fnListConcat(r, arg)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, x := range v.([]any) {
		if !slices.ContainsFunc(out, func(y any) bool { return reflect.DeepEqual(x, y) }) {
			out = append(out, x)
		}
	}
	return out, nil
}

func fnContains(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		return nil, badArgs(`Arguments to "contains" must be of the form: [value1, [value1, value2]]`)
	}
	switch t := l[1].(type) {
	case []any:
		return slices.ContainsFunc(t, func(y any) bool { return reflect.DeepEqual(l[0], y) }), nil
	case string:
		return strings.Contains(t, String(l[0])), nil
	}
	return nil, badArgs(`Second argument to "contains" should be a sequence.`)
}

func fnFilter(r *Resolver, arg any) (any, error) {
	v, err := r.Resolve(arg)
	if err != nil {
		return nil, err
	}
	l, _ := v.([]any)
	if len(l) != 2 {
		return nil, badArgs(`"filter" expected 2 arguments of the form [values, sequence]`)
	}
	vals, ok1 := l[0].([]any)
	seq, ok2 := l[1].([]any)
	if !ok1 || !ok2 {
		return nil, badArgs(`"filter" only works with lists`)
	}
	out := []any{}
	for _, x := range seq {
		if !slices.ContainsFunc(vals, func(y any) bool { return reflect.DeepEqual(x, y) }) {
			out = append(out, x)
		}
	}
	return out, nil
}

func fnIf(r *Resolver, arg any) (any, error) {
	l, ok := arg.([]any)
	if !ok || len(l) < 2 || len(l) > 3 {
		return nil, badArgs(`Arguments to "if" must be of the form: [condition_name, value_if_true, value_if_false]`)
	}
	c, err := r.Condition(l[0])
	if err != nil {
		return nil, err
	}
	if c {
		return r.Resolve(l[1])
	}
	if len(l) == 2 {
		return omit, nil
	}
	return r.Resolve(l[2])
}

// Condition evaluates a condition: a name, a boolean, or one of equals, not,
// and, or, contains over get_param values. Nil is true.
func (r *Resolver) Condition(c any) (bool, error) { return r.condition(c, 0) }

func (r *Resolver) condition(c any, depth int) (bool, error) {
	if depth > 100 {
		return false, errf("CircularDependencyException", "Circular definition for condition")
	}
	switch t := c.(type) {
	case nil:
		return true, nil
	case bool:
		return t, nil
	case string:
		if r.Template != nil {
			if d, ok := r.Template.Conditions[t]; ok {
				return r.condition(d, depth+1)
			}
		}
		return false, Invalid(nil, `Invalid condition "%s"`, t)
	case map[string]any:
		if len(t) != 1 {
			break
		}
		for k, arg := range t {
			return r.condFunc(k, arg, depth+1)
		}
	}
	return false, Invalid(nil, `Invalid condition "%s"`, String(c))
}

func (r *Resolver) condFunc(name string, arg any, depth int) (bool, error) {
	l, isList := arg.([]any)
	switch name {
	case "get_param":
		v, err := fnGetParam(r, arg)
		return truthy(v), err
	case "contains":
		v, err := fnContains(r, arg)
		b, _ := v.(bool)
		return b, err
	case "not":
		b, err := r.condition(arg, depth)
		return !b, err
	case "equals":
		if !isList || len(l) != 2 {
			return false, badArgs(`Arguments to "equals" must be of the form: [value_1, value_2]`)
		}
		v, err := r.Resolve(l)
		if err != nil {
			return false, err
		}
		pair, _ := v.([]any)
		return len(pair) == 2 && reflect.DeepEqual(Normalize(pair[0]), Normalize(pair[1])), nil
	case "and", "or":
		if !isList || len(l) < 2 {
			return false, badArgs(`The minimum number of condition arguments to "%s" is 2.`, name)
		}
		for _, x := range l {
			b, err := r.condition(x, depth)
			if err != nil {
				return false, err
			}
			if b != (name == "and") {
				return b, nil
			}
		}
		return name == "and", nil
	}
	return false, Invalid(nil, `Invalid condition "%s"`, name)
}
