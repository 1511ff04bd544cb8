package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const subscriptionsTable = "subscriptions"

func noSubscription(id string) error {
	return lcm.Errorf(lcm.KindNotFound, "Can not find requested vnf lcm subscriptions: %s", id)
}

// filterColumns is a filter taken apart: nil is an attribute that is absent or empty, and matches everything.
type filterColumns struct {
	types, operations, states []string
	vnfds, instances, names   []string
	products                  []map[string]string
}

// takeApart lays a filter out for its columns.
func takeApart(f *sol003.LifecycleChangeNotificationsFilter) filterColumns {
	var c filterColumns
	if f == nil {
		return c
	}
	c.types, c.operations, c.states = texts(f.NotificationTypes), texts(f.OperationTypes), texts(f.OperationStates)
	i := f.VnfInstanceSubscriptionFilter
	if i == nil {
		return c
	}
	c.vnfds, c.instances, c.names = texts(i.VnfdIds), texts(i.VnfInstanceIds), texts(i.VnfInstanceNames)
	for _, provider := range i.VnfProductsFromProviders {
		c.products = append(c.products, alternatives(provider)...)
	}
	return c
}

// texts returns the values sorted, each once; nil for none.
func texts[T ~string](in []T) []string {
	var out []string
	for _, v := range in {
		out = append(out, string(v))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// alternatives lays a provider's products, their versions and VNFD versions out as what an instance must have, any of
// them (SOL003 v2.6.1 §4.4.1.5).
func alternatives(p sol003.VnfProductsFromProvider) (out []map[string]string) {
	if len(p.VnfProducts) == 0 {
		return []map[string]string{{"vnfProvider": p.VnfProvider}}
	}
	for _, product := range p.VnfProducts {
		if len(product.Versions) == 0 {
			out = append(out, map[string]string{"vnfProvider": p.VnfProvider, "vnfProductName": product.VnfProductName})
		}
		for _, v := range product.Versions {
			software := map[string]string{
				"vnfProvider": p.VnfProvider, "vnfProductName": product.VnfProductName, "vnfSoftwareVersion": v.VnfSoftwareVersion,
			}
			if len(v.VnfdVersions) == 0 {
				out = append(out, software)
			}
			for _, vnfd := range v.VnfdVersions {
				out = append(out, map[string]string{
					"vnfProvider": p.VnfProvider, "vnfProductName": product.VnfProductName,
					"vnfSoftwareVersion": v.VnfSoftwareVersion, "vnfdVersion": vnfd,
				})
			}
		}
	}
	return out
}

// digest is the same for filters that match the same by the same attributes, in whatever order they stand.
func (c *filterColumns) digest() ([]byte, error) {
	products := make([]string, len(c.products))
	for n, p := range c.products {
		raw, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		products[n] = string(raw)
	}
	raw, err := json.Marshal([][]string{c.types, c.operations, c.states, c.vnfds, c.instances, c.names, texts(products)})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	return sum[:], nil
}

// CreateSubscription inserts a subscription, its authentication sealed. *lcm.SubscribedError: the project has one with
// the same callback and filter.
func (s *Store) CreateSubscription(ctx context.Context, sub *lcm.Subscription) error {
	body, err := json.Marshal(sub.Representation())
	if err != nil {
		return fmt.Errorf("encode subscription %s: %w", sub.ID, err)
	}
	var sealed []byte
	if sub.Auth != nil {
		plain, err := json.Marshal(sub.Auth)
		if err != nil {
			return fmt.Errorf("encode the authentication of subscription %s: %w", sub.ID, err)
		}
		if sealed, err = s.seal(subscriptionsTable, sub.ID, "authentication", plain); err != nil {
			return fmt.Errorf("seal the authentication of subscription %s: %w", sub.ID, err)
		}
	}
	c := takeApart(sub.Filter)
	digest, err := c.digest()
	if err != nil {
		return fmt.Errorf("encode the filter of subscription %s: %w", sub.ID, err)
	}
	var products any
	if len(c.products) > 0 {
		products = c.products
	}
	sub.Version = 1
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO subscriptions (id, project_id, all_projects, callback_uri, digest, notification_types,
				operation_types, operation_states, vnfd_ids, instance_ids, instance_names, products, body, sealed, version, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
			sub.ID, sub.ProjectID, sub.AllProjects, sub.CallbackURI, digest, c.types, c.operations, c.states, c.vnfds,
			c.instances, c.names, products, withoutNUL(body), sealed, sub.Version, sub.Created)
		if err != nil {
			return err
		}
		return s.recordRequest(ctx, tx, effect{resourceID: sub.ID, status: http.StatusCreated, body: body, version: sub.Version})
	})
	err = s.repeated(ctx, err)
	if breaks(err, "subscriptions_once") {
		id, err := s.SameSubscription(ctx, sub)
		if err != nil {
			return err
		}
		if id != "" {
			return &lcm.SubscribedError{ID: id}
		}
		return lcm.Errorf(lcm.KindConflict, "The same subscription has been made and deleted meanwhile.")
	}
	if err != nil {
		return fmt.Errorf("create a subscription: %w", err)
	}
	return nil
}

// SameSubscription returns the id of the project's subscription with the same callback and filter, "" when there is none.
func (s *Store) SameSubscription(ctx context.Context, sub *lcm.Subscription) (string, error) {
	c := takeApart(sub.Filter)
	digest, err := c.digest()
	if err != nil {
		return "", fmt.Errorf("encode a subscription's filter: %w", err)
	}
	var id string
	err = s.Pool.QueryRow(ctx, `SELECT id::text FROM subscriptions
		WHERE project_id = $1 AND all_projects = $2 AND callback_uri = $3 AND digest = $4`,
		sub.ProjectID, sub.AllProjects, sub.CallbackURI, digest).Scan(&id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("look for the same subscription: %w", err)
	}
	return id, nil
}

// Subscription reads a subscription with its authentication, for its delivery. Not found.
func (s *Store) Subscription(ctx context.Context, id string) (*lcm.Subscription, error) {
	sub := &lcm.Subscription{ID: id}
	var body, sealed []byte
	err := s.Pool.QueryRow(ctx, `SELECT project_id, all_projects, callback_uri, body, sealed, version, created_at
		FROM subscriptions WHERE id = $1`, id).
		Scan(&sub.ProjectID, &sub.AllProjects, &sub.CallbackURI, &body, &sealed, &sub.Version, &sub.Created)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noSubscription(id)
	case err != nil:
		return nil, fmt.Errorf("read subscription %s: %w", id, err)
	}
	var shown sol003.LccnSubscription
	if err := json.Unmarshal(body, &shown); err != nil {
		return nil, fmt.Errorf("decode subscription %s: %w", id, err)
	}
	sub.Filter = shown.Filter
	if sealed == nil {
		return sub, nil
	}
	plain, err := s.unseal(subscriptionsTable, id, "authentication", sealed)
	if err != nil {
		return nil, fmt.Errorf("open the authentication of subscription %s: %w", id, err)
	}
	if err := json.Unmarshal(plain, &sub.Auth); err != nil {
		return nil, fmt.Errorf("decode the authentication of subscription %s: %w", id, err)
	}
	return sub, nil
}

// DeleteSubscription deletes a subscription with all that it has not been told yet. Not found.
func (s *Store) DeleteSubscription(ctx context.Context, scope lcm.Scope, id string) error {
	missing := lcm.Errorf(lcm.KindNotFound, "Can not find requested vnf lcm subscription: %s", id)
	if !validID(id) {
		return missing
	}
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM subscriptions WHERE id = $1 AND ($2 OR project_id = $3 AND NOT all_projects)`, id, scope.Admin, scope.ProjectID)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return missing
		}
		if _, err = tx.Exec(ctx, `DELETE FROM deliveries WHERE subscription_id = $1`, id); err != nil {
			return err
		}
		return s.recordRequest(ctx, tx, effect{resourceID: id, status: http.StatusNoContent})
	})
	if err != nil && !lcm.Is(err, lcm.KindNotFound) {
		return fmt.Errorf("delete subscription %s: %w", id, err)
	}
	return err
}

// SubscriptionBody returns a subscription as the API shows it. Not found.
func (s *Store) SubscriptionBody(ctx context.Context, scope lcm.Scope, id string) (lcm.Body, error) {
	if !validID(id) {
		return lcm.Body{}, noSubscription(id)
	}
	b := lcm.Body{ID: id}
	err := s.Pool.QueryRow(ctx, `SELECT version, body FROM subscriptions WHERE id = $1 AND ($2 OR project_id = $3 AND NOT all_projects)`,
		id, scope.Admin, scope.ProjectID).Scan(&b.Version, &b.JSON)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lcm.Body{}, noSubscription(id)
	case err != nil:
		return lcm.Body{}, fmt.Errorf("read subscription %s: %w", id, err)
	}
	return b, nil
}

// subscriptionColumns are the attributes of a subscription that stand in columns.
var subscriptionColumns = columns{"id": {name: "t.id", kind: uuidColumn}, "callbackUri": {name: "t.callback_uri"}}

// Subscriptions streams subscriptions as the API shows them, in the order of creation.
func (s *Store) Subscriptions(ctx context.Context, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.bodies(ctx, "subscriptions t", "t.version", "t.body", subscriptionColumns, scope, q)
}
