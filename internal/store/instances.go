package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const instancesTable = "vnf_instances"

func noInstance(id string) error {
	return lcm.Errorf(lcm.KindNotFound, "Can not find requested vnf instance: %s", id)
}

func errVersion(id string) error {
	return lcm.Errorf(lcm.KindPrecondition, "VNF instance %s has changed: its ETag is not the one in If-Match.", id)
}

// encodeInstance returns an instance's row values: its public body and its sealed whole.
func (s *Store) encodeInstance(i *lcm.Instance) (body, sealed []byte, err error) {
	if body, err = json.Marshal(i.Representation()); err != nil {
		return nil, nil, fmt.Errorf("encode VNF instance %s: %w", i.ID, err)
	}
	whole, err := json.Marshal(i)
	if err != nil {
		return nil, nil, fmt.Errorf("encode VNF instance %s: %w", i.ID, err)
	}
	sealed, err = s.seal(instancesTable, i.ID, "sealed", whole)
	return withoutNUL(body), sealed, err
}

func (s *Store) decodeInstance(id string, sealed []byte, version int64) (*lcm.Instance, error) {
	whole, err := s.unseal(instancesTable, id, "sealed", sealed)
	if err != nil {
		return nil, err
	}
	i := new(lcm.Instance)
	if err := json.Unmarshal(whole, i); err != nil {
		return nil, fmt.Errorf("decode VNF instance %s: %w", id, err)
	}
	i.Version = version
	return i, nil
}

// CreateInstance implements lcm.Store.
func (s *Store) CreateInstance(ctx context.Context, i *lcm.Instance) error {
	body, sealed, err := s.encodeInstance(i)
	if err != nil {
		return err
	}
	note, err := json.Marshal(sol003.VnfIdentifierNotification{NotificationType: sol003.NotificationTypeVnfIdentifierCreation, VnfInstanceId: i.ID})
	if err != nil {
		return fmt.Errorf("encode the notification of VNF instance %s: %w", i.ID, err)
	}
	var told *string
	created := false
	b := &pgx.Batch{}
	queueReference(b, i.PackageID)
	made := effect{instanceID: i.ID, resourceID: i.ID, status: http.StatusCreated, body: body, version: i.Version}
	args := []any{
		i.ID, i.ProjectID, i.Name, i.VnfdID, i.PackageID, string(i.State), body, sealed, i.Version, i.Created,
		newID(), string(sol003.NotificationTypeVnfIdentifierCreation), note, attributeDigests(body),
	}
	b.Queue(`
		WITH i AS (
			INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, body, sealed, version, created_at, attributes)
			SELECT $1, $2, $3, $4, p.id, $6, $7, $8, $9, $10, $14 FROM vnf_packages p WHERE p.id = $5 AND p.operational_state = 'ENABLED'
			RETURNING id, project_id, body),
		`+s.auditPart(ctx, &args, "i", made)+`outbox AS (
			INSERT INTO notifications (id, type, vnf_instance_id, project_id, seq, body, created_at)
			SELECT $11, $12, i.id, i.project_id, 0, $13, $10 FROM i RETURNING `+outboxColumns+`),
		`+fanOut("(SELECT i.body FROM i)")+`
		SELECT told.subscriptions FROM outbox CROSS JOIN told`, args...).QueryRow(tellInto(&told, &created))
	s.queueKey(ctx, b, made, guardKey)
	if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
		return s.repeated(ctx, err)
	}
	if !created {
		return lcm.Errorf(lcm.KindConflict, "VNF package %s has been deleted or disabled meanwhile.", i.PackageID)
	}
	s.voice.tell(told)
	return nil
}

// Instance implements lcm.Store.
func (s *Store) Instance(ctx context.Context, scope lcm.Scope, id string) (*lcm.Instance, error) {
	if !validID(id) {
		return nil, noInstance(id)
	}
	var sealed []byte
	var version int64
	err := s.Pool.QueryRow(ctx, `SELECT sealed, version FROM vnf_instances WHERE id = $1 AND ($2 OR project_id = $3)`,
		id, scope.Admin, scope.ProjectID).Scan(&sealed, &version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noInstance(id)
	case err != nil:
		return nil, fmt.Errorf("read VNF instance %s: %w", id, err)
	}
	return s.decodeInstance(id, sealed, version)
}

// DeleteInstance implements lcm.Store.
func (s *Store) DeleteInstance(ctx context.Context, scope lcm.Scope, id string, ifMatch int64) error {
	if !validID(id) {
		return noInstance(id)
	}
	var told *string
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		var state string
		var version int64
		err := tx.QueryRow(ctx, `SELECT instantiation_state, version FROM vnf_instances WHERE id = $1 AND ($2 OR project_id = $3) FOR UPDATE`,
			id, scope.Admin, scope.ProjectID).Scan(&state, &version)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return noInstance(id)
		case err != nil:
			return err
		case ifMatch != 0 && ifMatch != version:
			return errVersion(id)
		case state != string(sol003.InstantiationStateNotInstantiated):
			return lcm.Errorf(lcm.KindConflict, "Vnf instance %s in instantiation_state %s. Cannot delete while the vnf instance is in this state.", id, state)
		}
		var active, operation string
		err = tx.QueryRow(ctx, `SELECT id, operation || ' in ' || operation_state FROM vnf_lcm_op_occs
			WHERE vnf_instance_id = $1 AND active`, id).Scan(&active, &operation)
		switch {
		case err == nil:
			return lcm.Errorf(lcm.KindConflict, "Vnf instance %s has LCM operation occurrence %s (%s). Cannot delete while the vnf instance is in this state.", id, active, operation)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		note, err := json.Marshal(sol003.VnfIdentifierNotification{NotificationType: sol003.NotificationTypeVnfIdentifierDeletion, VnfInstanceId: id})
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(`
			WITH i AS (DELETE FROM vnf_instances WHERE id = $1 RETURNING id, project_id, body),
			seen AS (DELETE FROM verifications WHERE vnf_instance_id = $1),
			outbox AS (
				INSERT INTO notifications (id, type, vnf_instance_id, project_id, seq, body, created_at)
				SELECT $2, $3, i.id, i.project_id, 0, $4, $5 FROM i RETURNING `+outboxColumns+`),
			`+fanOut("(SELECT i.body FROM i)")+`
			SELECT told.subscriptions FROM told`,
			id, newID(), string(sol003.NotificationTypeVnfIdentifierDeletion), note, s.Now()).QueryRow(tellInto(&told, nil))
		s.queueRequest(ctx, b, effect{instanceID: id, resourceID: id, status: http.StatusNoContent})
		return tx.SendBatch(ctx, b).Close()
	})
	if err == nil {
		s.voice.tell(told)
	}
	return err
}

// InstanceBody returns a VNF instance as the API shows it.
func (s *Store) InstanceBody(ctx context.Context, scope lcm.Scope, id string) (lcm.Body, error) {
	if !validID(id) {
		return lcm.Body{}, noInstance(id)
	}
	b := lcm.Body{ID: id}
	err := s.Pool.QueryRow(ctx, `SELECT version, body FROM vnf_instances WHERE id = $1 AND ($2 OR project_id = $3)`,
		id, scope.Admin, scope.ProjectID).Scan(&b.Version, &b.JSON)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lcm.Body{}, noInstance(id)
	case err != nil:
		return lcm.Body{}, fmt.Errorf("read VNF instance %s: %w", id, err)
	}
	return b, nil
}

// Instances streams VNF instances as the API shows them, in the order of creation.
func (s *Store) Instances(ctx context.Context, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.list(ctx, instanceList, scope, q)
}

// newID returns a UUIDv7: ids sort by creation.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
