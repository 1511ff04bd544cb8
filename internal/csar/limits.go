package csar

import "math"

// Limits bounds what an archive may contain. A field that is zero or negative
// takes its value from [DefaultLimits].
type Limits struct {
	// MaxEntries is the highest number of entries, folders included.
	MaxEntries int
	// MaxEntryBytes is the highest uncompressed size of one entry.
	MaxEntryBytes int64
	// MaxTotalBytes is the highest uncompressed size of all entries together.
	MaxTotalBytes int64
	// MaxRatio is the highest quotient of uncompressed and compressed size of
	// an entry of more than 1 MiB; smaller ones may compress as they like.
	MaxRatio int
}

// DefaultLimits leaves room for several virtual machine images: 20 000
// entries, 32 GiB an entry and in total, a compression ratio of 200 (deflate
// reaches 1030 on zeros, real images stay below 20).
var DefaultLimits = Limits{
	MaxEntries:    20_000,
	MaxEntryBytes: 32 << 30,
	MaxTotalBytes: 32 << 30,
	MaxRatio:      200,
}

const (
	// ratioFloor is the size up to which the ratio is not looked at.
	ratioFloor = 1 << 20
	// maxReadFile bounds what ReadFile holds in memory at once. Images are
	// streamed with Open instead.
	maxReadFile = 64 << 20
	// maxMetaFile bounds TOSCA.meta and the manifest.
	maxMetaFile = 4 << 20
	// directoryBytesPerEntry and directorySlack bound the bytes of the central
	// directory that are read: a header has 46 bytes plus its name, so half a
	// KiB an entry is ample, while 64 KiB names times a million are not.
	directoryBytesPerEntry = 512
	directorySlack         = 256 << 10
)

func (l Limits) withDefaults() Limits {
	if l.MaxEntries <= 0 {
		l.MaxEntries = DefaultLimits.MaxEntries
	}
	if l.MaxEntryBytes <= 0 {
		l.MaxEntryBytes = DefaultLimits.MaxEntryBytes
	}
	if l.MaxTotalBytes <= 0 {
		l.MaxTotalBytes = DefaultLimits.MaxTotalBytes
	}
	if l.MaxRatio <= 0 {
		l.MaxRatio = DefaultLimits.MaxRatio
	}
	return l
}

// directoryBudget is the number of bytes that reading the directory may take.
func (l Limits) directoryBudget() int64 {
	if int64(l.MaxEntries) > (math.MaxInt64-directorySlack)/directoryBytesPerEntry {
		return math.MaxInt64
	}
	return int64(l.MaxEntries)*directoryBytesPerEntry + directorySlack
}
