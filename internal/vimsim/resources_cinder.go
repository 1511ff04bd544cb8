package vimsim

import "slices"

func cinderTypes() []*rtype {
	return []*rtype{
		{
			name: "OS::Cinder::Volume", service: "cinder", selfWait: true,
			props: props(`name~ size~ image:image imageRef:image description~ volume_type~:volumetype metadata~ availability_zone snapshot_id
				source_volid backup_id~ scheduler_hints read_only~ multiattach`),
			attrs: []string{
				"availability_zone", "size", "snapshot_id", "display_name", "display_description", "volume_type", "metadata", "source_volid",
				"status", "created_at", "bootable", "metadata_values", "encrypted", "attachments", "attachments_list", "multiattach",
			},
			create: createVolume,
			update: func(e *exec, r *resource, p doc) error {
				v, found := e.c.cinder.volumes.get(r.phys)
				if !found {
					return &failure{class: "NotFound", msg: "Volume " + r.phys + " could not be found. (HTTP 404)"}
				}
				size, old := toInt(p["size"]), toInt(v["size"])
				if size > 0 && size < old {
					return &failure{class: "NotSupported", msg: "Shrinking volume is not supported."}
				}
				e.c.setVolume(r.phys, "size", max(size, old), "name", orElse(p["name"], v["name"]), "description", p["description"],
					"metadata", orElse(p["metadata"], doc{}), "volume_type", e.c.typeName(orElse(p["volume_type"], v["volume_type"])))
				return nil
			},
			remove: func(e *exec, r *resource) error {
				v, found := e.c.cinder.volumes.get(r.phys)
				if !found {
					return nil
				}
				// Heat waits for the detach; here the users are gone or never will be.
				if len(v["attachments"].([]any)) == 0 {
					e.c.setVolume(r.phys, "status", "available")
				}
				return clientErr("cinder", e.c.deleteVolume(r.phys))
			},
			show: func(c *Cloud, r *resource) doc {
				d, found := c.cinder.volumes.get(r.phys)
				if !found {
					return doc{}
				}
				return with(public(d), "attachments_list", d["attachments"], "display_name", d["name"], "display_description", d["description"], "metadata_values", d["metadata"])
			},
		},
		{
			name: "OS::Cinder::VolumeType", service: "cinder", props: props("name!~ metadata~ is_public description~ projects~"),
			create: func(e *exec, r *resource, p doc) error {
				d, err := e.c.newVolumeType(doc{"name": p["name"], "description": p["description"], "is_public": p["is_public"], "extra_specs": p["metadata"]})
				if err != nil {
					return clientFailure("cinder", err)
				}
				r.phys = str(d, "id")
				return nil
			},
			update: func(e *exec, r *resource, p doc) error {
				if d, found := e.c.cinder.types.get(r.phys); found {
					e.c.cinder.types.put(r.phys, with(d, "name", p["name"], "description", p["description"], "extra_specs", orElse(p["metadata"], doc{})))
				}
				return nil
			},
			remove: func(e *exec, r *resource) error { e.c.cinder.types.del(r.phys); return nil },
			show:   func(c *Cloud, r *resource) doc { d, _ := c.cinder.types.get(r.phys); return with(d) },
		},
		{
			name: "OS::Cinder::VolumeAttachment", service: "cinder", props: props("instance_uuid!~ volume_id!~:volume mountpoint~"),
			create: attachVolume,
			update: func(e *exec, r *resource, p doc) error {
				detachVolume(e.c, r, e.old)
				return attachVolume(e, r, p)
			},
			remove: func(e *exec, r *resource) error { detachVolume(e.c, r, r.props); return nil },
		},
	}
}

func (c *Cloud) typeName(v any) any {
	s, _ := v.(string)
	if l := c.cinder.types.find(s, nil); len(l) > 0 {
		return l[0]["name"]
	}
	return v
}

func createVolume(e *exec, r *resource, p doc) error {
	if e.inject != nil && (e.inject.Effect == EffectQuota) {
		return e.injected()
	}
	q := doc{
		"size": toInt(p["size"]), "name": orText(str(p, "name"), r.physicalName()), "description": p["description"], "volume_type": p["volume_type"],
		"metadata": p["metadata"], "availability_zone": nilIfEmpty(str(p, "availability_zone")), "multiattach": p["multiattach"],
	}
	for _, k := range []string{"image", "imageRef"} {
		if n := str(p, k); n != "" {
			d, err := e.c.findImage(r.stack.project, n)
			if err != nil {
				return &failure{class: "EntityMatchNotFound", msg: err.Error()}
			}
			q["imageRef"] = d["id"]
		}
	}
	d, err := e.c.newVolume(r.stack.project, r.stack.user, q)
	if err != nil {
		return clientFailure("cinder", err)
	}
	r.phys = str(d, "id")
	if err := e.wait(); err != nil {
		return err
	}
	if e.inject != nil && e.inject.Effect == EffectFail {
		e.c.setVolume(r.phys, "status", "error")
		return &failure{class: "ResourceInError", msg: `Went to status error due to "` + orText(e.inject.Reason, "Unknown") + `"`}
	}
	e.c.setVolume(r.phys, "status", "available")
	return nil
}

func attachVolume(e *exec, r *resource, p doc) error {
	s := e.c.nova.servers[str(p, "instance_uuid")]
	if s == nil {
		return &failure{class: "NotFound", msg: "Instance " + str(p, "instance_uuid") + " could not be found. (HTTP 404)"}
	}
	vid := str(p, "volume_id")
	if err := e.c.attach(vid, s.id, s.host, device(str(p, "mountpoint"), len(s.volumes)+1)); err != nil {
		return clientFailure("cinder", err)
	}
	s.volumes = append(s.volumes, vid)
	r.phys = vid
	return nil
}

func detachVolume(c *Cloud, r *resource, p doc) {
	sid, vid := str(p, "instance_uuid"), str(p, "volume_id")
	if s := c.nova.servers[sid]; s != nil {
		s.volumes = slices.DeleteFunc(s.volumes, func(v string) bool { return v == vid })
	}
	c.detach(vid, sid)
}
