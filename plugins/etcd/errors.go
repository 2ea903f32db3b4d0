package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// revisionOf names a version of the document: a restored cluster may use the number again, but
// not for the same content.
func revisionOf(mod int64, content []byte) string {
	sum := sha256.Sum256(content)
	return fmt.Sprintf("%d-%s", mod, hex.EncodeToString(sum[:8]))
}

// stale tells whether an error is one that new credentials may cure.
func stale(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrUserEmpty) ||
		errors.Is(err, rpctypes.ErrAuthFailed) || status.Code(err) == codes.Unauthenticated
}

// refused says why the cluster refuses us; "" when it does not.
func (l *link) refused(err error, doing string) string {
	who := "without a user"
	if l.user != "" {
		who = fmt.Sprintf("user '%s'", l.user)
	}
	switch err = rpctypes.Error(err); {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf("permission denied: etcd does not let us %s the key '%s' (%s)", doing, l.key, who)
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Sprintf("etcd refuses %s: wrong name, or wrong password in '%s'", who, l.password)
	case errors.Is(err, rpctypes.ErrUserEmpty) && l.user != "":
		return fmt.Sprintf("etcd wants a user name, and %s has no password: %s", who, l.troubles())
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return "etcd wants a user name: set the options user and password_file"
	case stale(err):
		return fmt.Sprintf("etcd does not accept the token of %s: %s", who, plain(status.Convert(err).Message()))
	}
	return ""
}

// unavailable says why the key can't be read.
func (l *link) unavailable(err error) *sdk.Unavailable {
	u := &sdk.Unavailable{Kind: sdk.Unreachable}
	text := l.refused(err, "read")
	switch {
	case text != "":
		u.Kind = sdk.Auth
	case errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader):
		text = "no leader: the cluster has lost its quorum, or is electing"
	case status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		u.Kind = sdk.Invalid
		text = fmt.Sprintf("the value is larger than the %d bytes a policy may have", sdk.MaxDocument)
	default:
		text = plain(message(err))
		switch more := l.troubles(); {
		case more != "" && (strings.Contains(message(err), "connection error") || strings.Contains(text, "transport: ")):
			text = more // the library tells of one member only
		case more != "":
			text += "; " + more
		}
		if strings.Contains(text, "certificate") || strings.Contains(text, "tls: ") {
			u.Kind = sdk.Auth
			if l.files.serverName != "" {
				text += fmt.Sprintf(" (server_name '%s')", l.files.serverName)
			}
		}
	}
	u.Reason = fmt.Sprintf("etcd key '%s' at %s can't be read: %s", l.key, l.places, text)
	return u
}

// absent says that the key does not exist.
func (l *link) absent() *sdk.Unavailable {
	return &sdk.Unavailable{Kind: sdk.Absent, Reason: fmt.Sprintf("etcd key '%s' at %s does not exist", l.key, l.places)}
}

// event is what the master is told about what was found.
func (l *link) event(f found) (sdk.Document, *sdk.Unavailable) {
	switch {
	case !f.present:
		return sdk.Document{}, l.absent()
	case len(f.content) > l.limits.document:
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Invalid, Reason: fmt.Sprintf(
			"the value of etcd key '%s' has %d bytes, a policy may have %d at most", l.key, len(f.content), l.limits.document)}
	}
	return f.document(), nil
}

// message is an error without the decoration of gRPC.
func message(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

var ourPort = regexp.MustCompile(`(read|write|dial) tcp \S+->\S+: `)

// plain takes out what is another text each time: our own port.
func plain(text string) string {
	return strings.TrimPrefix(ourPort.ReplaceAllString(text, ""), "connection error: desc = ")
}
