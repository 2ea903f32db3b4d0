// Package task is the queue of copies and moves that clients carry out for the master: who is to
// do what, what has been fetched, and how it ended.
//
// A task waits (Pending) until its client fetches it, is then under way (Processing) and ends
// as Succeeded or Failed, by its client's word or because it took too long. Of those that have
// ended the last few are remembered.
//
// A Queue has one lock, a leaf. Time is handed in with each call and never goes back.
package task
