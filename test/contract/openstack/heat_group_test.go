package openstack_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// cheap is a group's member that costs nothing.
const cheap = "{type: OS::Heat::TestResource, properties: {value: x}}"

// members lists a group's members in the order in which they were made, those of one second by name.
func (s *stack) members(t *testing.T, group string) []doc {
	t.Helper()
	_, id := link(s.resource(t, group), "nested")
	l := slices.DeleteFunc(s.resources(t), func(r doc) bool { _, in := link(r, "stack"); return in != id })
	slices.SortFunc(l, func(a, b doc) int {
		if n := strings.Compare(text(a, "creation_time"), text(b, "creation_time")); n != 0 {
			return n
		}
		return strings.Compare(text(a, "resource_name"), text(b, "resource_name"))
	})
	return l
}

// names are the names of resources, in order.
func names(l []doc) []string {
	out := make([]string, 0, len(l))
	for _, r := range l {
		out = append(out, text(r, "resource_name"))
	}
	return out
}

// awaitMembers waits until a group is at rest with so many members, all made and none that is going.
func (s *stack) awaitMembers(t *testing.T, group string, count int) []doc {
	t.Helper()
	var l []doc
	in := s.nested(t, group)
	s.c.eventually(t, "group "+group+" has its members", func() bool {
		if strings.HasSuffix(in.status(t), "_IN_PROGRESS") {
			return false
		}
		m := s.metadata(t, group)
		l = s.members(t, group)
		return len(l) == count && at(m, "scaling_in_progress") != true && !slices.ContainsFunc(l, func(r doc) bool { return strings.HasSuffix(text(r, "resource_status"), "IN_PROGRESS") })
	}, func() any { return l })
	return l
}

func (s *stack) metadata(t *testing.T, resource string) doc {
	t.Helper()
	d, _ := at(s.c.heat.get(t, s.path("resources", resource, "metadata")).doc, "metadata").(doc)
	return d
}

// sized is a group's template in which the size is literal.
func sized(size string) doc { return hot(group(0, 4, size, cheap)) }

// TestScalingPolicy: signals grow and shrink a group by a member; those who were there stay, the oldest goes first; neither
// goes beyond the limits; the stack's own state does not change.
func TestScalingPolicy(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(group(1, 3, "1", cheap)))
		first := names(s.awaitMembers(t, "g", 1))
		before := s.show(t)
		r := s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		t.Logf("signal: %d %q", r.status, r.text)
		two := names(s.awaitMembers(t, "g", 2))
		if !slices.Contains(two, first[0]) {
			t.Errorf("members %v after a scaling out of %v", two, first)
		}
		m := s.metadata(t, "g")
		same(t, "scaling_in_progress afterwards", at(m, "scaling_in_progress"), any(false))
		end, _ := at(m, "cooldown_end").(doc)
		if len(end) != 1 {
			t.Fatalf("cooldown_end: %v", m)
		}
		for when, why := range end {
			if _, err := time.Parse("2006-01-02T15:04:05.999999", when); err != nil {
				t.Errorf("cooldown_end: %v", err)
			}
			same(t, "cooldown's reason", why, any("change_in_capacity : 1"))
		}
		same(t, "the stack's state after a scaling", text(s.show(t), "stack_status")+text(s.show(t), "updated_time"), text(before, "stack_status")+text(before, "updated_time"))
		same(t, "the group's own state", text(s.resource(t, "g"), "resource_status"), "CREATE_COMPLETE")
		same(t, "the group's stack", s.nested(t, "g").status(t), "UPDATE_COMPLETE")
		s.signal(t, "out")
		three := names(s.awaitMembers(t, "g", 3))
		// Beyond the limit a signal is taken and does nothing.
		s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		time.Sleep(max(100*time.Millisecond, 5*c.pause))
		if now := names(s.awaitMembers(t, "g", 3)); !slices.Equal(now, three) {
			t.Errorf("members %v after a signal beyond the limit, %v before", now, three)
		}
		for left := 2; left >= 1; left-- {
			// Members of one second go in no promised order.
			all := s.members(t, "g")
			s.signal(t, "in").is(t, http.StatusOK, http.StatusNoContent)
			now := names(s.awaitMembers(t, "g", left))
			oldest := text(all[0], "creation_time")
			for _, r := range all {
				if !slices.Contains(now, text(r, "resource_name")) && text(r, "creation_time") != oldest {
					t.Errorf("%s of %s has gone before one of %s", text(r, "resource_name"), text(r, "creation_time"), oldest)
				}
			}
		}
		last := names(s.members(t, "g"))
		s.signal(t, "in").is(t, http.StatusOK, http.StatusNoContent)
		time.Sleep(max(100*time.Millisecond, 5*c.pause))
		if now := names(s.awaitMembers(t, "g", 1)); !slices.Equal(now, last) {
			t.Errorf("members %v after a signal below the limit, %v before", now, last)
		}
		// Signals are for policies; the others refuse them.
		s.signal(t, "none").is(t, http.StatusNotFound)
		r = s.signal(t, "g")
		t.Logf("a signal to the group: %d %s", r.status, r.text)
	})
}

// TestSignalWhileScaled: signals that come while a group is scaled, or cools down, are taken and do nothing.
func TestSignalWhileScaled(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		member := fmt.Sprintf("{type: OS::Heat::TestResource, properties: {action_wait_secs: {create: %d, delete: 0}}}", c.seconds(2))
		s := c.made(t, hot(group(0, 5, "1", member)))
		s.awaitMembers(t, "g", 1)
		s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		c.eventually(t, "the group is being scaled", func() bool { return at(s.metadata(t, "g"), "scaling_in_progress") == true }, func() any { return s.metadata(t, "g") })
		// The mark is set first, and the group's stack updated then.
		c.eventually(t, "the group's stack is updated", func() bool { return s.nested(t, "g").status(t) == "UPDATE_IN_PROGRESS" },
			func() any { return s.nested(t, "g").status(t) })
		same(t, "the stack meanwhile", s.status(t), "CREATE_COMPLETE")
		s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		s.awaitMembers(t, "g", 2)
		// With a cooldown the next one is ignored until it has passed.
		cooling := strings.ReplaceAll(group(0, 5, "2", member), "scaling_adjustment: 1}", fmt.Sprintf("scaling_adjustment: 1, cooldown: %d}", c.seconds(4)))
		s.update(t, hot(cooling))
		s.awaitMembers(t, "g", 2)
		s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		s.awaitMembers(t, "g", 3)
		s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		time.Sleep(500 * time.Millisecond)
		s.awaitMembers(t, "g", 3)
		var end time.Time
		for when := range s.metadata(t, "g")["cooldown_end"].(doc) {
			end, _ = time.Parse("2006-01-02T15:04:05.999999", when)
		}
		if left := time.Until(end); left > time.Duration(c.seconds(5))*time.Second || left < -time.Minute {
			t.Errorf("the cooldown ends in %s", left)
		}
		c.eventually(t, "the cooldown ends", func() bool { return time.Now().After(end.Add(time.Second)) }, func() any { return end })
		s.signal(t, "out")
		s.awaitMembers(t, "g", 4)
	})
}

// TestDesiredCapacity: an update makes a group as large as it says; one that says nothing keeps the number of members; members
// stay where they are not too many, and several come or go at once.
func TestDesiredCapacity(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, sized("2"))
		two := names(s.awaitMembers(t, "g", 2))
		s.update(t, sized("4"))
		four := s.awaitMembers(t, "g", 4)
		for _, n := range two {
			if !slices.Contains(names(four), n) {
				t.Errorf("%s has gone in a growth: %v", n, names(four))
			}
		}
		same(t, "the group's state after an update", text(s.resource(t, "g"), "resource_status"), "UPDATE_COMPLETE")
		// Without a size it stays.
		s.update(t, sized(""))
		if now := names(s.awaitMembers(t, "g", 4)); !slices.Equal(now, names(four)) {
			t.Errorf("members %v after an update without size, %v before", now, names(four))
		}
		// The size that the group has been scaled to is not remembered: the template's counts.
		s.signal(t, "in")
		three := s.awaitMembers(t, "g", 3)
		s.update(t, sized("4"))
		now := names(s.awaitMembers(t, "g", 4))
		for _, n := range names(three) {
			if !slices.Contains(now, n) {
				t.Errorf("%s has gone: %v", n, now)
			}
		}
		// Two at once: the oldest go.
		all := s.members(t, "g")
		s.update(t, sized("2"))
		now = names(s.awaitMembers(t, "g", 2))
		second := text(all[1], "creation_time")
		for _, r := range all {
			if !slices.Contains(now, text(r, "resource_name")) && text(r, "creation_time") > second {
				t.Errorf("%s of %s has gone before others, of %s", text(r, "resource_name"), text(r, "creation_time"), second)
			}
		}
		// A size of 0 says nothing to an update: the group stays as it is.
		s.update(t, sized("0"))
		t.Logf("members after an update to 0: %d", len(s.members(t, "g")))
		same(t, "members after an update to 0", len(s.members(t, "g")), 2)
		// Policies bring it to none, and back.
		s.signal(t, "in")
		s.awaitMembers(t, "g", 1)
		s.signal(t, "in")
		s.awaitMembers(t, "g", 0)
		s.signal(t, "out")
		s.awaitMembers(t, "g", 1)
		s.signal(t, "in")
		s.awaitMembers(t, "g", 0)
		s.update(t, sized("3"))
		s.awaitMembers(t, "g", 3)
	})
}

// TestEmptyGroup: a group whose size is 0 is made with no members, and an update gives it some.
func TestEmptyGroup(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, sized("0"))
		s.awaitMembers(t, "g", 0)
		if s.physical(t, "g") == "" {
			t.Error("an empty group has no stack")
		}
		s.update(t, sized("2"))
		s.awaitMembers(t, "g", 2)
		// Members that are marked do not count: with all of them marked, the size 0 takes them away.
		in := s.nested(t, "g")
		for _, name := range names(s.members(t, "g")) {
			in.mark(t, name).is(t, http.StatusOK)
		}
		s.update(t, sized("0"))
		s.awaitMembers(t, "g", 0)
		s.update(t, sized("1"))
		s.awaitMembers(t, "g", 1)
		// A maximum of none leaves none.
		s.update(t, hot(group(0, 0, "", cheap)))
		s.awaitMembers(t, "g", 0)
	})
}

// TestUnhealthyMember: an update makes a member that is marked again under its own name; when the group shrinks it is the
// first to go.
func TestUnhealthyMember(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, sized("3"))
		was := map[string]string{}
		all := s.awaitMembers(t, "g", 3)
		for _, r := range all {
			was[text(r, "resource_name")] = text(r, "physical_resource_id")
		}
		sick := names(all)[2]
		in := s.nested(t, "g")
		in.mark(t, sick).is(t, http.StatusOK)
		same(t, "state of what is marked", text(in.resource(t, sick), "resource_status"), "CHECK_FAILED")
		same(t, "reason of what is marked", text(in.resource(t, sick), "resource_status_reason"), "contract")
		same(t, "state of the group around", text(s.resource(t, "g"), "resource_status"), "CREATE_COMPLETE")
		same(t, "state of the stack around", s.status(t), "CREATE_COMPLETE")
		s.update(t, sized("3"))
		for _, r := range s.awaitMembers(t, "g", 3) {
			old, known := was[text(r, "resource_name")]
			switch id := text(r, "physical_resource_id"); {
			case !known:
				t.Errorf("there is a new member %s", text(r, "resource_name"))
			case text(r, "resource_name") == sick && id == old:
				t.Errorf("%s is what it was", sick)
			case text(r, "resource_name") != sick && id != old:
				t.Errorf("%s is another one", text(r, "resource_name"))
			}
		}
		// Marked and then shrunk: the marked one goes, though it is not the oldest.
		all = s.members(t, "g")
		sick = names(all)[2]
		in.mark(t, sick).is(t, http.StatusOK)
		s.update(t, sized("2"))
		now := names(s.awaitMembers(t, "g", 2))
		if slices.Contains(now, sick) || len(now) != 2 {
			t.Errorf("members %v, %s was to go", now, sick)
		}
	})
}

// TestMembersFollow: with another definition the members become it, one after the other, under their names.
func TestMembersFollow(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		of := func(text string) doc {
			return hot(group(0, 4, "2", "{type: member.yaml, properties: {text: "+text+"}}"), "files", doc{"member.yaml": memberFile})
		}
		s := c.made(t, of("one"))
		before := s.awaitMembers(t, "g", 2)
		s.update(t, of("two"))
		after := s.awaitMembers(t, "g", 2)
		if !slices.Equal(names(after), names(before)) || !slices.Equal(physicals(after), physicals(before)) {
			t.Errorf("members %v %v, before %v %v", names(after), physicals(after), names(before), physicals(before))
		}
		for _, r := range after {
			name, id := link(r, "nested")
			d := (&stack{c: c, name: name, id: id}).resource(t, "part")
			same(t, "what is in member "+text(r, "resource_name"), text(d, "attributes", "output"), "two")
		}
		// So they do with another file.
		request := of("two")
		request["files"] = doc{"member.yaml": strings.ReplaceAll(memberFile, "part:", "other:")}
		s.update(t, request)
		for _, r := range s.awaitMembers(t, "g", 2) {
			name, id := link(r, "nested")
			(&stack{c: c, name: name, id: id}).resource(t, "other")
		}
	})
}

// alone is a group of ports that all ask for one address, so that there can be but one of them.
func alone(size string) doc {
	template := strings.Replace(group(0, 4, size, "{type: OS::Neutron::Port, properties: {network: {get_resource: net}, fixed_ips: [{ip_address: 10.98.0.7}]}}"),
		"resources:", `resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.98.0.0/24}}`, 1)
	// A port waits for the subnets of its network that are in its own stack; a group does not know of any.
	return hot(strings.Replace(template, "type: OS::Heat::AutoScalingGroup", "type: OS::Heat::AutoScalingGroup\n    depends_on: sub", 1))
}

// TestScalingFails: a member that cannot be made is there as a failed one; the group's stack says so, the group and its stack
// do not; an update with the group's size takes the failed one away first.
func TestScalingFails(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, alone("1"))
		good := names(s.awaitMembers(t, "g", 1))
		s.signal(t, "out").is(t, http.StatusOK, http.StatusNoContent)
		in := s.nested(t, "g")
		d := in.await(t, "UPDATE_FAILED")
		reason := text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		var bad doc
		all := s.members(t, "g")
		for _, r := range all {
			if text(r, "resource_name") != good[0] {
				bad = r
			}
		}
		if len(all) != 2 || bad == nil {
			t.Fatalf("members %v after a growth that fails", names(all))
		}
		same(t, "the new member", text(bad, "resource_status"), "CREATE_FAILED")
		if id := text(bad, "physical_resource_id"); id != "" {
			t.Errorf("the member that could not be made has the id %s", id)
		}
		place := "IpAddressAlreadyAllocatedClient: resources." + text(bad, "resource_name") + ": IP address 10.98.0.7 already allocated in subnet "
		if !strings.HasPrefix(reason, "Resource CREATE failed: "+place) || !strings.HasPrefix(text(bad, "resource_status_reason"), place) {
			t.Errorf("the stack's reason %q, the member's %q, want both to have %q", reason, text(bad, "resource_status_reason"), place)
		}
		same(t, "the member that was there", text(in.resource(t, good[0]), "resource_status"), "CREATE_COMPLETE")
		same(t, "the group", text(s.resource(t, "g"), "resource_status"), "CREATE_COMPLETE")
		same(t, "the stack", s.status(t), "CREATE_COMPLETE")
		c.eventually(t, "the scaling has ended", func() bool { return at(s.metadata(t, "g"), "scaling_in_progress") == false }, func() any { return s.metadata(t, "g") })
		s.update(t, alone("1"))
		if now := names(s.awaitMembers(t, "g", 1)); !slices.Equal(now, good) {
			t.Errorf("members %v after shrinking, want %v", now, good)
		}
		same(t, "the group's stack", in.status(t), "UPDATE_COMPLETE")

		// An update that grows it fails as a whole.
		d = s.update(t, alone("2"), "UPDATE_FAILED")
		reason = text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, "Resource UPDATE failed: resources.g: Resource CREATE failed: IpAddressAlreadyAllocatedClient: resources.") {
			t.Errorf("reason %q", reason)
		}
		same(t, "the group", text(s.resource(t, "g"), "resource_status"), "UPDATE_FAILED")
		// A group that has failed ignores signals.
		s.signal(t, "in").is(t, http.StatusOK, http.StatusNoContent)
		time.Sleep(max(200*time.Millisecond, 5*c.pause))
		same(t, "members after a signal to a group that has failed", len(s.members(t, "g")), 2)
		s.update(t, alone("1"))
		if now := names(s.awaitMembers(t, "g", 1)); !slices.Equal(now, good) {
			t.Errorf("members %v after shrinking, want %v", now, good)
		}
	})
}

// TestResourceGroup: members are called by numbers, and an update makes them as many as it says.
func TestResourceGroup(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		of := func(count, more string) doc {
			return hot("resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: " + count + more +
				", resource_def: {type: OS::Heat::TestResource, properties: {value: 'n%index%'}}}}}")
		}
		s := c.made(t, of("2", ""))
		listed := func() string {
			l := names(s.members(t, "g"))
			slices.Sort(l)
			return strings.Join(l, " ")
		}
		same(t, "members", listed(), "0 1")
		same(t, "value of the second", text(s.nested(t, "g").resource(t, "1"), "attributes", "output"), "n1")
		zero := s.nested(t, "g").physical(t, "0")
		s.update(t, of("3", ""))
		same(t, "members", listed(), "0 1 2")
		same(t, "the first", s.nested(t, "g").physical(t, "0"), zero)
		s.update(t, of("1", ""))
		same(t, "members", listed(), "0")
		s.update(t, of("1", ", removal_policies: [{resource_list: ['0']}]"))
		same(t, "members after the removal of the first", listed(), "1")
	})
}
