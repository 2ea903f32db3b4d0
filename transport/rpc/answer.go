package rpc

// Answer handles the complete requests at the front of frames as if a client at peer had sent
// them on a connection of its own, and returns the answers and how many bytes were consumed.
// An error means that the connection would be closed. It is the server without sockets, for
// tests, benchmarks and replay.
func (s *Server) Answer(peer string, frames []byte) (answers []byte, consumed int, err error) {
	s.serving.Store(true)
	p := newSession(s, peer, 0)
	for {
		n, out, err := p.process(frames[consumed:])
		answers = append(answers, out...)
		consumed += n
		if err != nil || n == 0 {
			return answers, consumed, err
		}
	}
}
