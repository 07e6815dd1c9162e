package client

// OpenFileKeysWith opens a directory of keys with another way to make its names
// durable.
var OpenFileKeysWith = openFileKeys
