// Receives webhooks with nothing but Go's standard library (1.19 or later).
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

var (
	signatureForm   = regexp.MustCompile(`^t=(0|[1-9][0-9]{0,11}),v1=([0-9a-f]{64})$`)
	deliveryIDForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	replayCountForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
	versionForm     = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)
)

const tolerance = 300 * time.Second

// Event is the body of a delivery. Type decides the content of Data.
type Event struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Unverified is a request that is not a delivery of Callplane. Status is the answer to it.
type Unverified struct {
	Reason string
	Status int
}

func (u Unverified) Error() string { return u.Reason }

// Verify returns the event of a delivery. The secrets are by version; the prefix whsec_ belongs to the secret.
func Verify(headers http.Header, body []byte, secrets map[string]string, now time.Time) (Event, error) {
	values := map[string]string{}
	for name, form := range map[string]*regexp.Regexp{
		"X-Service-Signature":           signatureForm,
		"X-Service-Delivery-Id":         deliveryIDForm,
		"X-Service-Replay-Count":        replayCountForm,
		"X-Service-Signing-Key-Version": versionForm,
	} {
		found := headers.Values(name)
		if len(found) != 1 || !form.MatchString(found[0]) {
			return Event{}, Unverified{name + " is missing, malformed or repeated", 400}
		}
		values[name] = found[0]
	}
	parts := signatureForm.FindStringSubmatch(values["X-Service-Signature"])
	seconds, _ := strconv.ParseInt(parts[1], 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return Event{}, Unverified{"the timestamp is more than 300 seconds from now", 400}
	}
	version := values["X-Service-Signing-Key-Version"]
	secret, isKnown := secrets[version]
	if !isKnown {
		// The delivery is retried, and succeeds once the secret is deployed.
		return Event{}, Unverified{"there is no secret of version " + version, 503}
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s.%s.", parts[1], values["X-Service-Delivery-Id"], values["X-Service-Replay-Count"])
	mac.Write(body)
	signature, _ := hex.DecodeString(parts[2])
	if !hmac.Equal(mac.Sum(nil), signature) {
		return Event{}, Unverified{"the signature does not match", 400}
	}
	var event Event
	var object map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &object) != nil || object == nil || json.Unmarshal(body, &event) != nil {
		return Event{}, Unverified{"the body is not a JSON object", 400}
	}
	return event, nil
}

func process(event Event) {
	// Store event.ID in the transaction of your work, so that each event is processed once.
	fmt.Println("processing", event.Type, event.ID)
}

func main() {
	var secrets map[string]string
	if err := json.Unmarshal([]byte(os.Getenv("WEBHOOK_SECRETS")), &secrets); err != nil {
		log.Fatal("WEBHOOK_SECRETS must be a JSON object of secrets by version: ", err)
	}
	http.HandleFunc("/webhooks", func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
		if err != nil {
			response.WriteHeader(400)
			return
		}
		event, err := Verify(request.Header, body, secrets, time.Now())
		if err != nil {
			log.Print(err)
			response.WriteHeader(err.(Unverified).Status)
			return
		}
		process(event)
		response.WriteHeader(204)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}
