package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// vimBody is the body column of a VIM: what the API may show of it.
type vimBody struct {
	Desc    string         `json:"description"`
	Auth    map[string]any `json:"auth_cred"`
	Project map[string]any `json:"vim_project"`
	Extra   map[string]any `json:"extra,omitempty"`
	Regions []string       `json:"regions"`
}

// vimSecrets is the sealed column: the same attributes in clear.
type vimSecrets struct {
	Auth  map[string]any `json:"auth_cred"`
	Extra map[string]any `json:"extra,omitempty"`
}

func noVIM(id string) *lcm.Error {
	return lcm.Errorf(lcm.KindNotFound, "Specified VIM id %s is invalid. Please verify and pass a valid VIM id", id)
}

func (s *Store) vimColumns(v, shown *lcm.VIM) (body, sealed []byte, err error) {
	regions := v.Regions
	if regions == nil {
		regions = []string{}
	}
	if body, err = json.Marshal(vimBody{v.Desc, shown.Auth, v.Project, shown.Extra, regions}); err != nil {
		return nil, nil, fmt.Errorf("encode the body of vim %s: %w", v.ID, err)
	}
	plain, err := json.Marshal(vimSecrets{v.Auth, v.Extra})
	if err != nil {
		return nil, nil, fmt.Errorf("encode the credentials of vim %s: %w", v.ID, err)
	}
	if sealed, err = s.seal("vims", v.ID, "credentials", plain); err != nil {
		return nil, nil, fmt.Errorf("seal the credentials of vim %s: %w", v.ID, err)
	}
	return withoutNUL(body), sealed, nil
}

// CreateVIM inserts a VIM: v holds the credentials in clear, to be sealed, shown.Auth and shown.Extra what the API shows
// of them. Conflict: the project has a default VIM already, or one of that name.
func (s *Store) CreateVIM(ctx context.Context, v, shown *lcm.VIM) error {
	body, sealed, err := s.vimColumns(v, shown)
	if err != nil {
		return err
	}
	v.Version = 1
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := defaultTaken(ctx, tx, v); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO vims
			(id, project_id, name, type, is_default, status, auth_url, body, sealed, version, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			v.ID, v.ProjectID, v.Name, v.Type, v.Default, v.Status, v.AuthURL, body, sealed, v.Version, v.Created)
		if err != nil {
			return err
		}
		return s.recordRequest(ctx, tx, effect{resourceID: v.ID, status: http.StatusCreated})
	})
	return s.vimConflict(ctx, v, s.repeated(ctx, err))
}

// defaultTaken refuses a second default VIM of a project. The index vims_one_default has the last word.
func defaultTaken(ctx context.Context, q packageQuerier, v *lcm.VIM) error {
	if !v.Default {
		return nil
	}
	var other string
	err := q.QueryRow(ctx, `SELECT id::text FROM vims WHERE project_id = $1 AND is_default AND id <> $2`, v.ProjectID, v.ID).Scan(&other)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the default vim of project %s: %w", v.ProjectID, err)
	}
	return lcm.Titled(lcm.KindConflict, "VimDefaultDuplicateException", "Default VIM already exists %s.", other)
}

func (s *Store) vimConflict(ctx context.Context, v *lcm.VIM, err error) error {
	var classed *lcm.Error
	switch {
	case err == nil:
		return nil
	case breaks(err, "vims_one_default"):
		if taken := defaultTaken(ctx, s.Pool, v); taken != nil {
			return taken
		}
		return lcm.Titled(lcm.KindConflict, "VimDefaultDuplicateException", "Default VIM already exists.")
	case breaks(err, "vims_name"):
		return lcm.Titled(lcm.KindConflict, "DuplicateEntity", "vim already exist with given ['tenant_id', 'name', 'deleted_at']")
	case errors.As(err, &classed):
		return err
	default:
		return fmt.Errorf("write vim %s: %w", v.ID, err)
	}
}

const vimSelect = `SELECT id::text, project_id, name, type, is_default, status, auth_url, body, sealed, version, created_at, updated_at FROM vims`

// scanVIM reads a row of vimSelect; with clear, Auth and Extra hold the credentials, else what the API shows.
func (s *Store) scanVIM(row pgx.Row, clear bool) (*lcm.VIM, error) {
	var (
		v            lcm.VIM
		body, sealed []byte
		updated      *time.Time
	)
	if err := row.Scan(&v.ID, &v.ProjectID, &v.Name, &v.Type, &v.Default, &v.Status, &v.AuthURL, &body, &sealed,
		&v.Version, &v.Created, &updated); err != nil {
		return nil, err
	}
	if updated != nil {
		v.Updated = *updated
	}
	var b vimBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("decode the body of vim %s: %w", v.ID, err)
	}
	v.Desc, v.Auth, v.Project, v.Extra, v.Regions = b.Desc, b.Auth, b.Project, b.Extra, b.Regions
	if !clear {
		return &v, nil
	}
	plain, err := s.unseal("vims", v.ID, "credentials", sealed)
	if err != nil {
		return nil, fmt.Errorf("open the credentials of vim %s: %w", v.ID, err)
	}
	var c vimSecrets
	if err := json.Unmarshal(plain, &c); err != nil {
		return nil, fmt.Errorf("decode the credentials of vim %s: %w", v.ID, err)
	}
	v.Auth, v.Extra = c.Auth, c.Extra
	return &v, nil
}

// VIM reads a VIM as the API shows it or, with clear, with its credentials. Not found.
func (s *Store) VIM(ctx context.Context, sc lcm.Scope, id string, clear bool) (*lcm.VIM, error) {
	if !validID(id) {
		return nil, noVIM(id)
	}
	v, err := s.scanVIM(s.Pool.QueryRow(ctx, vimSelect+` WHERE id = $1 AND ($2 OR project_id = $3)`, id, sc.Admin, sc.ProjectID), clear)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noVIM(id)
	case err != nil:
		return nil, fmt.Errorf("read vim %s: %w", id, err)
	}
	return v, nil
}

// DefaultVIM reads a project's default VIM with its credentials. Not found.
func (s *Store) DefaultVIM(ctx context.Context, projectID string) (*lcm.VIM, error) {
	v, err := s.scanVIM(s.Pool.QueryRow(ctx, vimSelect+` WHERE project_id = $1 AND is_default`, projectID), true)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, lcm.Errorf(lcm.KindNotFound, "Default VIM is not defined.")
	case err != nil:
		return nil, fmt.Errorf("read the default vim of project %s: %w", projectID, err)
	}
	return v, nil
}

// VIMs lists the VIMs that the scope sees, oldest first, as the API shows them or, with clear, with their credentials.
func (s *Store) VIMs(ctx context.Context, sc lcm.Scope, clear bool) ([]lcm.VIM, error) {
	rows, err := s.Pool.Query(ctx, vimSelect+` WHERE $1 OR project_id = $2 ORDER BY created_at, id`, sc.Admin, sc.ProjectID)
	if err != nil {
		return nil, fmt.Errorf("list vims: %w", err)
	}
	defer rows.Close()
	list := []lcm.VIM{}
	for rows.Next() {
		v, err := s.scanVIM(rows, clear)
		if err != nil {
			return nil, fmt.Errorf("list vims: %w", err)
		}
		list = append(list, *v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list vims: %w", err)
	}
	return list, nil
}

// UpdateVIM writes a VIM whose stored version is still v.Version, as the next version; shown as in CreateVIM. The status
// is SetVIMStatus' to change. Precondition: it has been changed meanwhile. Conflict as for CreateVIM. Not found.
func (s *Store) UpdateVIM(ctx context.Context, v, shown *lcm.VIM) error {
	body, sealed, err := s.vimColumns(v, shown)
	if err != nil {
		return err
	}
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := defaultTaken(ctx, tx, v); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE vims SET name = $3, is_default = $4, auth_url = $5, body = $6, sealed = $7,
			updated_at = $8, version = version + 1 WHERE id = $1 AND version = $2`,
			v.ID, v.Version, v.Name, v.Default, v.AuthURL, body, sealed, v.Updated)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			var there bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM vims WHERE id = $1)`, v.ID).Scan(&there); err != nil {
				return err
			}
			if !there {
				return noVIM(v.ID)
			}
			return lcm.Errorf(lcm.KindPrecondition, "VIM %s has been changed meanwhile", v.ID)
		}
		return s.recordRequest(ctx, tx, effect{resourceID: v.ID, status: http.StatusOK})
	})
	if err := s.vimConflict(ctx, v, err); err != nil {
		return err
	}
	v.Version++
	return nil
}

// SetVIMStatus changes a VIM's status from one to another and tells whether it did: not when somebody else has changed
// the status or the VIM meanwhile. It makes no new version: the status is an observation, not a change of the VIM.
func (s *Store) SetVIMStatus(ctx context.Context, id string, version int64, from, to string) (bool, error) {
	tag, err := s.Pool.Exec(ctx, `UPDATE vims SET status = $4 WHERE id = $1 AND version = $2 AND status = $3`, id, version, from, to)
	if err != nil {
		return false, fmt.Errorf("set the status of vim %s: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}

// DeleteVIM deletes a VIM that no instance refers to. Conflict, not found.
func (s *Store) DeleteVIM(ctx context.Context, sc lcm.Scope, id string) error {
	if !validID(id) {
		return noVIM(id)
	}
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := lockReferences(ctx, tx, id); err != nil {
			return err
		}
		var used bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM vnf_instances i WHERE i.vim_id = v.id)
				OR EXISTS (SELECT 1 FROM vnf_lcm_op_occs o WHERE o.vim_id = v.id AND o.active)
			FROM vims v WHERE v.id = $1 AND ($2 OR v.project_id = $3)`, id, sc.Admin, sc.ProjectID).Scan(&used)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return noVIM(id)
		case err != nil:
			return err
		case used:
			return lcm.Titled(lcm.KindConflict, "VimInUseException", "VIM %s is still in use by VNF", id)
		}
		if _, err = tx.Exec(ctx, `DELETE FROM vims WHERE id = $1`, id); err != nil {
			return err
		}
		return s.recordRequest(ctx, tx, effect{resourceID: id, status: http.StatusNoContent})
	})
	if err != nil {
		return fmt.Errorf("delete vim %s: %w", id, err)
	}
	return nil
}
