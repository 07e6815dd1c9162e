// Package decimal reads and writes numbers and amounts as people do: digits, perhaps
// a sign, perhaps a point. What a parser of Go takes besides (1e9, 0x10, NaN, Inf, 1_000)
// is a typing error in a flag or a file.
//
// It must not know what a number means.
package decimal
