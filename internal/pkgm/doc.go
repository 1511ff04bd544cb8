// Package pkgm manages VNF packages (SOL005 v2.6.1 §9; SOL003 v2.6.1 §10): it creates, changes and deletes their
// resources, stores their zips, onboards them and gives access to what is in them.
//
// # How a package is onboarded
//
// A PUT of the content moves the package from CREATED to UPLOADING by compare-and-swap, streams the zip into the store
// in chunks and then, in one transaction, names the content by its digest, moves the package to PROCESSING and inserts
// a trigger; only then is the request accepted. An upload from a URI moves the package to UPLOADING and inserts the
// trigger at once; the download is then part of the job. The job ([Service.Run]) opens the zip, compares the hashes of
// its artifacts, reads the VNFD and finishes with one transaction. All of it is done under the package's fence, any
// number of times if need be; whatever is wrong with the package puts it back to CREATED with
// onboardingFailureDetails, whatever is wrong with us is tried again by the job's queue.
//
// # How contents are stored
//
// A zip is stored as rows of [ChunkBytes], addressed by its SHA-256: the same zip uploaded twice, by two nodes at once
// even, is stored once. Reading is by random access over the chunks, so that one artifact is read without the rest.
package pkgm
