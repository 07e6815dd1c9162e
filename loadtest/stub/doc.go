// Package stub is an order server in memory that keeps the contract, or breaks it
// in one chosen way. Tests of the harness use it to prove that each break is
// found, and that nothing is found where there is none.
//
// It must not be used as a measure of speed.
package stub
