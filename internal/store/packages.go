package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// storedDescriptor is what the descriptor column holds.
type storedDescriptor struct {
	Entry      string           `json:"entry"`
	MetaPath   string           `json:"metaPath,omitempty"`
	Descriptor *vnfd.Descriptor `json:"descriptor"`
}

func noPackage(id string) *lcm.Error {
	return lcm.Errorf(lcm.KindNotFound, "Can not find requested vnf package: %s", id)
}

// CreatePackage inserts a package in CREATED.
func (s *Store) CreatePackage(ctx context.Context, p *lcm.Package) error {
	body, err := packageBody(p)
	if err != nil {
		return err
	}
	answered, err := json.Marshal(p.Representation())
	if err != nil {
		return fmt.Errorf("encode vnf package %s: %w", p.ID, err)
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO vnf_packages
		(id, project_id, onboarding_state, operational_state, body, fence, version, created_at)
		VALUES ($1, $2, $3, $4, $5, 1, 1, $6)`,
		p.ID, p.ProjectID, string(p.OnboardingState), string(p.OperationalState), body, p.Created)
	s.queueRequest(ctx, b, effect{resourceID: p.ID, status: http.StatusCreated, body: withoutNUL(answered), version: 1})
	if err := s.repeated(ctx, s.Pool.SendBatch(ctx, b).Close()); err != nil {
		return fmt.Errorf("insert vnf package %s: %w", p.ID, err)
	}
	p.Fence, p.Version = 1, 1
	return nil
}

// packageHead are the columns that decide; everything but the body and the descriptor.
const packageHead = `p.id::text, p.project_id, p.onboarding_state, p.operational_state, COALESCE(p.content_id::text, ''),
	COALESCE(p.owner, ''), p.fence, p.version, p.created_at,
	(EXISTS (SELECT 1 FROM vnf_instances i WHERE i.vnf_pkg_id = p.id) OR EXISTS (SELECT 1 FROM vnf_lcm_op_occs o WHERE o.vnf_pkg_id = p.id AND o.active))`

func headTargets(p *lcm.Package, inUse *bool) []any {
	return []any{&p.ID, &p.ProjectID, (*string)(&p.OnboardingState), (*string)(&p.OperationalState), &p.ContentID,
		&p.Owner, &p.Fence, &p.Version, &p.Created, inUse}
}

func usage(inUse bool) sol003.PackageUsageStateType {
	if inUse {
		return sol003.PackageUsageStateTypeInUse
	}
	return sol003.PackageUsageStateTypeNotInUse
}

// PackageHead reads a package's states, content id, fence and version, without its body and descriptor. Not found.
func (s *Store) PackageHead(ctx context.Context, sc lcm.Scope, id string) (*lcm.Package, error) {
	if !validID(id) {
		return nil, noPackage(id)
	}
	return s.packageHead(ctx, noPackage(id), `p.id = $1`, id, sc)
}

// PackageHeadByVnfd is PackageHead of the onboarded package that holds the VNFD. Not found.
func (s *Store) PackageHeadByVnfd(ctx context.Context, sc lcm.Scope, vnfdID string) (*lcm.Package, error) {
	missing := lcm.Errorf(lcm.KindNotFound, "Can not find requested vnf package vnfd: %s", vnfdID)
	if !utf8.ValidString(vnfdID) || strings.ContainsRune(vnfdID, 0) { // no text of the database
		return nil, missing
	}
	return s.packageHead(ctx, missing, `p.vnfd_id = $1`, vnfdID, sc)
}

func (s *Store) packageHead(ctx context.Context, missing *lcm.Error, where, key string, sc lcm.Scope) (*lcm.Package, error) {
	var p lcm.Package
	var inUse bool
	err := s.Pool.QueryRow(ctx, `SELECT `+packageHead+` FROM vnf_packages p WHERE `+where+
		` AND ($2 OR p.project_id = $3)`, key, sc.Admin, sc.ProjectID).Scan(headTargets(&p, &inUse)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, missing
	case err != nil:
		return nil, fmt.Errorf("read vnf package %s: %w", key, err)
	}
	p.UsageState = usage(inUse)
	return &p, nil
}

// LoadPackage reads a whole package, whoever it belongs to: with its Descriptor when ONBOARDED and its Source while it
// is to be downloaded. Not found.
func (s *Store) LoadPackage(ctx context.Context, id string) (*lcm.Package, error) {
	if !validID(id) {
		return nil, noPackage(id)
	}
	return s.loadPackage(ctx, s.Pool, id, "", true)
}

// querier is a pool or a transaction.
type packageQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (s *Store) loadPackage(ctx context.Context, q packageQuerier, id, lock string, descriptor bool) (*lcm.Package, error) {
	var (
		p                  lcm.Package
		inUse              bool
		body, desc, sealed []byte
	)
	err := q.QueryRow(ctx, `SELECT `+packageHead+`, p.body, CASE WHEN $2 THEN p.descriptor END, p.sealed
		FROM vnf_packages p WHERE p.id = $1 `+lock, id, descriptor).
		Scan(append(headTargets(&p, &inUse), &body, &desc, &sealed)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noPackage(id)
	case err != nil:
		return nil, fmt.Errorf("read vnf package %s: %w", id, err)
	}
	p.UsageState = usage(inUse)
	var shown sol003.VnfPkgInfo
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // numbers within userDefinedData stay as they were written
	if err := dec.Decode(&shown); err != nil {
		return nil, fmt.Errorf("decode the body of vnf package %s: %w", id, err)
	}
	p.UserDefinedData, p.Failure = shown.UserDefinedData, shown.OnboardingFailureDetails
	p.Checksum, p.Images, p.Artifacts = shown.Checksum, shown.SoftwareImages, shown.AdditionalArtifacts
	if desc != nil {
		var d storedDescriptor
		if err := json.Unmarshal(desc, &d); err != nil {
			return nil, fmt.Errorf("decode the descriptor of vnf package %s: %w", id, err)
		}
		p.Entry, p.MetaPath, p.Descriptor = d.Entry, d.MetaPath, d.Descriptor
	}
	if sealed != nil {
		plain, err := s.unseal("vnf_packages", id, "source", sealed)
		if err != nil {
			return nil, fmt.Errorf("open the source of vnf package %s: %w", id, err)
		}
		if p.Source, err = lcm.ParsePackageSource(plain); err != nil {
			return nil, fmt.Errorf("decode the source of vnf package %s: %w", id, err)
		}
	}
	return &p, nil
}

// lockPackage reads a package and holds its row until the transaction ends.
func (s *Store) lockPackage(ctx context.Context, tx pgx.Tx, id string) (*lcm.Package, error) {
	return s.loadPackage(ctx, tx, id, "FOR UPDATE OF p", true)
}

// lockHeld is lockPackage of live work that is done under a fence. ErrStale when it is not ours any more.
func (s *Store) lockHeld(ctx context.Context, tx pgx.Tx, id string, fence int64) (*lcm.Package, error) {
	if !validID(id) {
		return nil, lcm.ErrStale
	}
	p, err := s.lockPackage(ctx, tx, id)
	if lcm.Is(err, lcm.KindNotFound) {
		return nil, lcm.ErrStale
	}
	if err != nil {
		return nil, err
	}
	if p.Fence != fence || (p.OnboardingState != sol003.PackageOnboardingStateTypeUploading && p.OnboardingState != sol003.PackageOnboardingStateTypeProcessing) {
		return nil, lcm.ErrStale
	}
	return p, nil
}

// writePackage writes what lockPackage read and the caller changed, as the next version. A nil Descriptor leaves the
// stored one alone.
func (s *Store) writePackage(ctx context.Context, tx pgx.Tx, p *lcm.Package) error {
	body, err := packageBody(p)
	if err != nil {
		return err
	}
	var vnfdID *string
	var desc, sealed []byte
	if p.OnboardingState == sol003.PackageOnboardingStateTypeOnboarded && p.Descriptor != nil {
		vnfdID = &p.Descriptor.ID
		if desc, err = json.Marshal(storedDescriptor{p.Entry, p.MetaPath, p.Descriptor}); err != nil {
			return fmt.Errorf("encode the descriptor of vnf package %s: %w", p.ID, err)
		}
	}
	if p.Source != nil {
		plain, err := p.Source.Plain()
		if err != nil {
			return fmt.Errorf("encode the source of vnf package %s: %w", p.ID, err)
		}
		if sealed, err = s.seal("vnf_packages", p.ID, "source", plain); err != nil {
			return fmt.Errorf("seal the source of vnf package %s: %w", p.ID, err)
		}
	}
	p.Version++
	_, err = tx.Exec(ctx, `UPDATE vnf_packages SET onboarding_state = $2, operational_state = $3, vnfd_id = $4,
		content_id = NULLIF($5, '')::uuid, body = $6, descriptor = COALESCE($7, descriptor), sealed = $8,
		owner = NULLIF($9, ''), fence = $10, version = $11 WHERE id = $1`,
		p.ID, string(p.OnboardingState), string(p.OperationalState), vnfdID, p.ContentID, body, desc, sealed,
		p.Owner, p.Fence, p.Version)
	switch {
	case breaks(err, "vnf_packages_vnfd"):
		return lcm.Errorf(lcm.KindConflict, "Vnf package with vnfd id %s already exists.", *vnfdID)
	case err != nil:
		return fmt.Errorf("write vnf package %s: %w", p.ID, err)
	}
	return nil
}

// ChangePackage applies change to a package and writes it as its next version, all in one transaction; an error of
// change is returned as it is and nothing is written. Not found.
func (s *Store) ChangePackage(ctx context.Context, sc lcm.Scope, id string, change func(*lcm.Package) error) (*lcm.Package, error) {
	return s.changePackage(ctx, sc, id, http.StatusOK, change)
}

// changePackage is ChangePackage for a request that is answered with the status.
func (s *Store) changePackage(ctx context.Context, sc lcm.Scope, id string, status int, change func(*lcm.Package) error) (*lcm.Package, error) {
	if !validID(id) {
		return nil, noPackage(id)
	}
	var p *lcm.Package
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if p, err = s.lockScoped(ctx, tx, sc, id); err != nil {
			return err
		}
		if err := change(p); err != nil {
			return err
		}
		if err := s.writePackage(ctx, tx, p); err != nil {
			return err
		}
		return s.recordRequest(ctx, tx, effect{resourceID: id, status: status})
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s *Store) lockScoped(ctx context.Context, tx pgx.Tx, sc lcm.Scope, id string) (*lcm.Package, error) {
	p, err := s.lockPackage(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if !sc.Admin && p.ProjectID != sc.ProjectID {
		return nil, noPackage(id)
	}
	return p, nil
}

// DeletePackage deletes a package that is neither ENABLED, IN_USE nor being onboarded (SOL005 v2.6.1 §9.4.3.3.5).
// Not found, conflict. Its content is left to DropContent and CollectContents.
func (s *Store) DeletePackage(ctx context.Context, sc lcm.Scope, id string) (contentID string, err error) {
	if !validID(id) {
		return "", noPackage(id)
	}
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := lockReferences(ctx, tx, id); err != nil {
			return err
		}
		p, err := s.lockScoped(ctx, tx, sc, id)
		if err != nil {
			return err
		}
		if p.OperationalState == sol003.PackageOperationalStateTypeEnabled || p.UsageState == sol003.PackageUsageStateTypeInUse {
			return lcm.Errorf(lcm.KindConflict, "VNF Package %s cannot be deleted as it's operational state is %s and usage state is %s.",
				id, p.OperationalState, p.UsageState)
		}
		if p.OnboardingState == sol003.PackageOnboardingStateTypeUploading || p.OnboardingState == sol003.PackageOnboardingStateTypeProcessing {
			return lcm.Errorf(lcm.KindConflict, "VNF Package %s cannot be deleted as it's onboarding state is %s.", id, p.OnboardingState)
		}
		contentID = p.ContentID
		if _, err = tx.Exec(ctx, `DELETE FROM vnf_packages WHERE id = $1`, id); err != nil {
			return fmt.Errorf("delete vnf package %s: %w", id, err)
		}
		return s.recordRequest(ctx, tx, effect{resourceID: id, status: http.StatusNoContent})
	})
	return contentID, err
}

// BeginUpload moves a package from CREATED to UPLOADING for a PUT of its content that the node receives, and returns
// the fence to do it under. admit refuses other states. Not found.
func (s *Store) BeginUpload(ctx context.Context, sc lcm.Scope, id, node string, admit func(*lcm.Package) error) (fence int64, err error) {
	p, err := s.changePackage(ctx, sc, id, http.StatusAccepted, func(p *lcm.Package) error {
		if err := admit(p); err != nil {
			return err
		}
		p.OnboardingState, p.Failure, p.Source = sol003.PackageOnboardingStateTypeUploading, nil, nil
		p.Owner = node
		p.Fence++
		return nil
	})
	if err != nil {
		return 0, err
	}
	return p.Fence, nil
}

// BeginDownload moves a package from CREATED to UPLOADING from a URI and inserts the trigger of that work, in one
// transaction. admit refuses other states. Not found.
func (s *Store) BeginDownload(ctx context.Context, sc lcm.Scope, id string, source *lcm.PackageSource, admit func(*lcm.Package) error) error {
	if !validID(id) {
		return noPackage(id)
	}
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := s.lockScoped(ctx, tx, sc, id)
		if err != nil {
			return err
		}
		if err := admit(p); err != nil {
			return err
		}
		p.OnboardingState, p.Failure, p.Source, p.Owner = sol003.PackageOnboardingStateTypeUploading, nil, source, ""
		p.Fence++
		if err := s.writePackage(ctx, tx, p); err != nil {
			return err
		}
		if err := s.recordRequest(ctx, tx, effect{resourceID: id, status: http.StatusAccepted}); err != nil {
			return err
		}
		return s.enqueueOnboard(ctx, tx, p.ID, p.Fence)
	})
	if err == nil {
		s.voice.announce(onboardQueue)
	}
	return s.repeated(ctx, err)
}

// ClaimPackage makes the node the owner of a package in UPLOADING from a URI or in PROCESSING whose fence is given, and
// reads it. ErrStale when the work has moved on or is done.
func (s *Store) ClaimPackage(ctx context.Context, id string, fence int64, node string) (*lcm.Package, error) {
	var p *lcm.Package
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if p, err = s.lockHeld(ctx, tx, id, fence); err != nil {
			return err
		}
		if p.OnboardingState == sol003.PackageOnboardingStateTypeUploading && p.Source == nil {
			return lcm.ErrStale // a PUT that is being received; no trigger is for it
		}
		p.Owner = node
		if _, err = tx.Exec(ctx, `UPDATE vnf_packages SET owner = $2 WHERE id = $1`, id, node); err != nil {
			return fmt.Errorf("claim vnf package %s: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// FinishOnboarding makes a package in PROCESSING ONBOARDED and ENABLED with what onboarding found (Descriptor,
// Checksum, Images, Artifacts, Entry, MetaPath of found, held under found.Fence). ErrStale; conflict when another
// package holds the VNFD.
func (s *Store) FinishOnboarding(ctx context.Context, found *lcm.Package) error {
	return inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := s.lockHeld(ctx, tx, found.ID, found.Fence)
		if err != nil {
			return err
		}
		if p.OnboardingState != sol003.PackageOnboardingStateTypeProcessing {
			return lcm.ErrStale
		}
		p.OnboardingState, p.OperationalState = sol003.PackageOnboardingStateTypeOnboarded, sol003.PackageOperationalStateTypeEnabled
		p.Descriptor, p.Checksum, p.Images, p.Artifacts = found.Descriptor, found.Checksum, found.Images, found.Artifacts
		p.Entry, p.MetaPath = found.Entry, found.MetaPath
		p.Source, p.Owner, p.Failure = nil, "", nil
		return s.writePackage(ctx, tx, p)
	})
}

// FailOnboarding puts a package in UPLOADING or PROCESSING back to CREATED with the reason and lets go of its content,
// whose id it returns for DropContent. ErrStale.
func (s *Store) FailOnboarding(ctx context.Context, id string, fence int64, why *sol003.ProblemDetails) (contentID string, err error) {
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := s.lockHeld(ctx, tx, id, fence)
		if err != nil {
			return err
		}
		contentID = p.ContentID
		return s.backToCreated(ctx, tx, p, why)
	})
	return contentID, err
}

func (s *Store) backToCreated(ctx context.Context, tx pgx.Tx, p *lcm.Package, why *sol003.ProblemDetails) error {
	p.OnboardingState, p.Failure = sol003.PackageOnboardingStateTypeCreated, why
	p.ContentID, p.Source, p.Owner = "", nil, ""
	p.Fence++ // whoever still works on it finds out
	return s.writePackage(ctx, tx, p)
}

// adoptPackages takes over the packages that nobody will come back to: their owner is dead, or it is a job's turn and no
// trigger of the package's fence is queued or being run by a living node. What is a job's gets a new trigger under the
// next fence; a PUT that the dead node was receiving cannot be resumed and goes back to CREATED with that reason. It
// returns how many it has taken over.
func (s *Store) adoptPackages(ctx context.Context, tx pgx.Tx) (int, error) {
	rows, err := tx.Query(ctx, `SELECT p.id::text FROM vnf_packages p
		WHERE p.onboarding_state IN ('UPLOADING', 'PROCESSING')
		  AND (p.owner IS NOT NULL AND p.owner NOT IN (SELECT n.id FROM nodes n)
		    OR (p.onboarding_state = 'PROCESSING' OR p.sealed IS NOT NULL)
		       AND NOT EXISTS (
			SELECT 1 FROM river_job j
			WHERE j.kind = $1 AND j.args ->> 'package' = p.id::text AND (j.args ->> 'fence')::bigint = p.fence
			  AND (j.state IN ('available', 'pending', 'retryable', 'scheduled')
			       OR j.state = 'running' AND j.attempted_by[cardinality(j.attempted_by)] IN (SELECT n.id FROM nodes n))))
		ORDER BY p.id FOR UPDATE OF p SKIP LOCKED`, onboardArgs{}.Kind())
	if err != nil {
		return 0, fmt.Errorf("find orphaned packages: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("find orphaned packages: %w", err)
	}
	for _, id := range ids {
		p, err := s.lockPackage(ctx, tx, id)
		if err != nil {
			return 0, err
		}
		if p.OnboardingState == sol003.PackageOnboardingStateTypeUploading && p.Source == nil {
			why := &sol003.ProblemDetails{Status: 503, Title: "Upload interrupted",
				Detail: "The node that received the package's content stopped before it was complete. Upload it again."}
			if err := s.backToCreated(ctx, tx, p, why); err != nil {
				return 0, err
			}
			continue
		}
		p.Owner = ""
		p.Fence++
		if err := s.writePackage(ctx, tx, p); err != nil {
			return 0, err
		}
		if err := s.enqueueOnboard(ctx, tx, p.ID, p.Fence); err != nil {
			return 0, fmt.Errorf("trigger the onboarding of vnf package %s: %w", p.ID, err)
		}
	}
	return len(ids), nil
}

// shownPackages is vnf_packages as the API shows it: usageState stands for whether instances refer to the package now,
// and since that changes without the package being written, it takes part in the version.
const shownPackages = `(SELECT p.id, p.project_id, p.onboarding_state, p.operational_state, p.vnfd_id, p.created_at,
		p.version * 2 + u.in_use::int AS version,
		CASE WHEN u.in_use THEN jsonb_set(p.body::jsonb, '{usageState}', '"IN_USE"')::json ELSE p.body END AS body
	FROM vnf_packages p
	CROSS JOIN LATERAL (SELECT (EXISTS (SELECT 1 FROM vnf_instances i WHERE i.vnf_pkg_id = p.id) OR EXISTS (SELECT 1 FROM vnf_lcm_op_occs o WHERE o.vnf_pkg_id = p.id AND o.active)) AS in_use) u) AS t`

// PackageBody returns a package as the API answers it, without _links. Not found.
func (s *Store) PackageBody(ctx context.Context, sc lcm.Scope, id string) (lcm.Body, error) {
	if !validID(id) {
		return lcm.Body{}, noPackage(id)
	}
	b := lcm.Body{ID: id}
	err := s.Pool.QueryRow(ctx, `SELECT t.id::text, t.version, t.body FROM `+shownPackages+`
		WHERE t.id = $1 AND ($2 OR t.project_id = $3)`, id, sc.Admin, sc.ProjectID).Scan(&b.ID, &b.Version, &b.JSON)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lcm.Body{}, noPackage(id)
	case err != nil:
		return lcm.Body{}, fmt.Errorf("read vnf package %s: %w", id, err)
	}
	return b, nil
}

// packageColumns are the attributes of a package that stand in columns.
var packageColumns = columns{
	"id": {name: "t.id", kind: uuidColumn}, "vnfdId": {name: "t.vnfd_id"},
	"onboardingState": {name: "t.onboarding_state", kind: enumColumn}, "operationalState": {name: "t.operational_state", kind: enumColumn},
}

// Packages streams the packages that the query selects, in the order of their ids, as the API answers them. The body's
// bytes are good until the next one is asked for.
func (s *Store) Packages(ctx context.Context, sc lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.bodies(ctx, shownPackages, "t.version", "t.body", packageColumns, sc, q)
}

// packageBody returns the body column. usageState stands in it as NOT_IN_USE: readers put the real one.
func packageBody(p *lcm.Package) ([]byte, error) {
	shown := p.Representation()
	shown.UsageState = sol003.PackageUsageStateTypeNotInUse
	for i := range shown.SoftwareImages {
		shown.SoftwareImages[i].CreatedAt = shown.SoftwareImages[i].CreatedAt.UTC().Truncate(time.Microsecond)
	}
	body, err := json.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("encode the body of vnf package %s: %w", p.ID, err)
	}
	if len(p.UserDefinedData) == 0 { // always shown, even when empty
		body = append(body[:len(body)-1], `,"userDefinedData":{}}`...)
	}
	return withoutNUL(body), nil
}

// withoutNUL replaces the escaped NUL characters of a JSON text, which the json type takes but jsonb does not: one such
// row would break every filter over the table.
func withoutNUL(body []byte) []byte {
	nul := []byte(`\u0000`)
	if !bytes.Contains(body, nul) {
		return body
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			out = append(out, body[i])
			continue
		}
		if bytes.HasPrefix(body[i:], nul) {
			out = append(out, `\ufffd`...)
			i += len(nul) - 1
			continue
		}
		out = append(out, body[i], body[i+1]) // an escape is two bytes at least, in valid JSON
		i++
	}
	return out
}
