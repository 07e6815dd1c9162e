// Package drive carries intents to the server.
//
// In the open model every intent starts when it is due, whatever the server
// does; a start for which there is no room is dropped and counted, never put
// off. In the closed model a fixed number of clients work one after the other,
// to find the ceiling. Copies, retries and repeats have due times of their own,
// so that a stalled generator shows in the response times too.
//
// It must not judge answers beyond giving them their name.
package drive
