import type { WebhookDeliveryDetail } from '@callplane/server/requests';
import { shellQuoted } from '../../api/curl.js';
import { Section } from '../../components/layout.js';
import { Code } from '../../components/text.js';

/** @param version of the secret that the receiver expects */
export function VerifySnippets({ version }: { version: number }) {
  return (
    <div className="stack">
      <p className="quiet">
        A receiver verifies the raw body before it parses it, with the secret of the version in{' '}
        <code>x-service-signing-key-version</code>. Retries and replays keep the event id: store it with your work, and
        skip one that you know.
      </p>
      {Object.entries(SNIPPETS).map(([language, code], at) => (
        // One of them is open at a time.
        <details key={language} name="verify" open={at === 0}>
          <summary>{language}</summary>
          <Code text={code.replace('VERSION', String(version))} label={`Verify a request: ${language}`} />
        </details>
      ))}
    </div>
  );
}

/** A command that computes the signature of the last request of a delivery, if there was one. */
export function VerifyDelivery({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { lastAttempt, body, id: deliveryId } = delivery;
  const signature = lastAttempt?.requestHeaders?.['x-service-signature'];
  const [, signedAt, beginning] = /^t=(\d+),v1=([0-9a-f]+)/.exec(signature ?? '') ?? [];
  if (lastAttempt === null || signedAt === undefined) return null;
  const signedContent = `${signedAt}.${deliveryId}.${lastAttempt.replayCount}.${body}`;
  const command = [
    "read -rs WEBHOOK_SECRET   # paste the secret: it stays out of the shell's history",
    `printf '%s' ${shellQuoted(signedContent)} \\`,
    '  | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET"',
  ].join('\n');
  return (
    <Section title="Verify">
      <div className="stack">
        <p className="quiet">
          The command computes the signature of the last request with secret version {lastAttempt.signingKeyVersion}. It
          begins with <code>{beginning}</code>. A receiver that computes another value uses another secret, or not the
          exact bytes of the body.
        </p>
        <Code text={command} label="Verify this delivery" />
      </div>
    </Section>
  );
}

const NODE = `import { verifyWebhook } from '@callplane/webhook-verifier';

// Each secret by its version: {"VERSION":"whsec_…"}. Keep an old one for 7 days after a rotation.
const secrets = JSON.parse(process.env.WEBHOOK_SECRETS);
// rawBody: the bytes as they arrived, before anything parses them.
const result = verifyWebhook({ headers: request.headers, rawBody, secrets });
if (!result.ok) return response.writeHead(result.reason === 'unknown_signing_key_version' ? 503 : 400).end();
await processOnce(result.event); // skips an event id that it has processed before
response.writeHead(204).end();`;

const PYTHON = `import hashlib, hmac, json, os, re, time

SECRETS = json.loads(os.environ["WEBHOOK_SECRETS"])  # by version: {"VERSION": "whsec_..."}

def verify(headers, body):  # body: the bytes as they arrived
    t, v1 = re.fullmatch(r"t=(\\d{1,12}),v1=([0-9a-f]{64})", headers["x-service-signature"]).groups()
    if abs(time.time() - int(t)) > 300:
        raise ValueError("The timestamp is too old.")
    signed = f'{t}.{headers["x-service-delivery-id"]}.{headers["x-service-replay-count"]}.'.encode() + body
    secret = SECRETS[headers["x-service-signing-key-version"]]  # answer 503 to an unknown version
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(v1, expected):
        raise ValueError("The signature is wrong.")`;

const PHP = `<?php
$body = file_get_contents('php://input');
$secrets = json_decode(getenv('WEBHOOK_SECRETS'), true); // by version: {"VERSION": "whsec_..."}
$secret = $secrets[$_SERVER['HTTP_X_SERVICE_SIGNING_KEY_VERSION'] ?? ''] ?? null;
if ($secret === null) {
    http_response_code(503); // not deployed yet: the delivery is tried again
    exit;
}
if (!preg_match('/\\At=(\\d{1,12}),v1=([0-9a-f]{64})\\z/', $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '', $match)
    || abs(time() - (int) $match[1]) > 300) {
    http_response_code(400);
    exit;
}
$signed = $match[1] . '.' . $_SERVER['HTTP_X_SERVICE_DELIVERY_ID'] . '.'
    . $_SERVER['HTTP_X_SERVICE_REPLAY_COUNT'] . '.' . $body;
if (!hash_equals(hash_hmac('sha256', $signed, $secret), $match[2])) {
    http_response_code(400);
    exit;
}`;

const GO = `var signature = regexp.MustCompile(\`^t=([0-9]{1,12}),v1=([0-9a-f]{64})$\`)

// secrets: by version, {"VERSION": "whsec_..."}. body: the bytes as they arrived.
func verify(r *http.Request, body []byte, secrets map[string]string) bool {
	secret, isKnown := secrets[r.Header.Get("x-service-signing-key-version")]
	if !isKnown {
		return false // better: answer 503, and the delivery is tried again
	}
	match := signature.FindStringSubmatch(r.Header.Get("x-service-signature"))
	if match == nil {
		return false
	}
	seconds, _ := strconv.ParseInt(match[1], 10, 64)
	if math.Abs(time.Since(time.Unix(seconds, 0)).Seconds()) > 300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s.%s.", match[1], r.Header.Get("x-service-delivery-id"), r.Header.Get("x-service-replay-count"))
	mac.Write(body)
	return hmac.Equal([]byte(match[2]), []byte(hex.EncodeToString(mac.Sum(nil))))
}`;

/** Code of a receiver that verifies the signature with the secret of VERSION. More: docs/receivers.md. */
const SNIPPETS = { 'Node.js': NODE, Python: PYTHON, PHP, Go: GO };
