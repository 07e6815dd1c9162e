// Package exact reads JSON objects by the exact names of their members.
//
// encoding/json takes Order_ID for order_id where a struct asks for one of them,
// takes "2" for a number that is asked for as one, and keeps the last of two members
// of one name. A client in another language does none of that, so a judge of answers
// must not either.
//
// It must not know what an answer means.
package exact
