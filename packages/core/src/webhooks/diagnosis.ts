import type { AttemptOutcome, DeliveryFailureReason } from './vocabulary.js';

/** Why an attempt or a delivery failed, and advice to the owner of the receiver. One sentence each. */
export interface Diagnosis {
  summary: string;
  advice: string;
}

const RETRIED = 'Callplane retries';

/** Diagnoses by error code. docs/diagnoses.md is generated from them. */
export const DIAGNOSES = {
  URL_NOT_ALLOWED: {
    summary: 'The URL is not allowed by the rules of this deployment.',
    advice: 'Give the endpoint an https URL of a public host on port 443 or from 1024 upwards, then replay.',
  },
  ADDRESS_NOT_PUBLIC: {
    summary: 'The host resolves to an address that is not public.',
    advice:
      'Correct the DNS records of the host, or let the operator allow its network with WEBHOOK_ALLOWED_CIDRS; then replay.',
  },
  ENOTFOUND: {
    summary: 'DNS does not know the host name.',
    advice: 'Check the spelling of the URL and that the DNS record of the host exists.',
  },
  ENODATA: {
    summary: 'DNS knows the host name, but has no address for it.',
    advice: 'Add an A or AAAA record for the host.',
  },
  DNS_TIMEOUT: {
    summary: 'DNS did not answer within 5 seconds.',
    advice: `Check the name servers of the host's domain. ${RETRIED}.`,
  },
  DNS_FAILED: {
    summary: 'The host name could not be resolved.',
    advice: `Check the name servers of the host's domain. ${RETRIED}.`,
  },
  ECONNREFUSED: {
    summary: 'No process accepts connections at the address and port.',
    advice: 'Start the receiver, or correct the port of the URL.',
  },
  PROXY_REFUSED: {
    summary: 'The proxy of this deployment refused the connection.',
    advice: 'Tell the operator: the rules of the proxy (WEBHOOK_PROXY_URL) have to allow the address and port.',
  },
  PROXY_UNREACHABLE: {
    summary: 'The proxy of this deployment cannot be reached.',
    advice: `Tell the operator to check WEBHOOK_PROXY_URL and the proxy. Callplane retries.`,
  },
  CONNECT_TIMEOUT: {
    summary: 'The address did not accept a connection within 10 seconds.',
    advice: 'Check that the receiver runs and that its firewall lets connections of Callplane pass.',
  },
  CONNECT_FAILED: {
    summary: 'The connection to the address failed.',
    advice: 'Check that the receiver runs and that a network route to it exists.',
  },
  CERT_HAS_EXPIRED: {
    summary: 'The certificate of the receiver has expired.',
    advice: 'Renew the certificate.',
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    summary: 'The certificate of the receiver is for another host name.',
    advice: 'Use a certificate for the host of the URL, or correct the URL.',
  },
  CERT_NOT_YET_VALID: {
    summary: 'The certificate of the receiver is not valid yet.',
    advice: 'Correct the dates of the certificate, or let the operator correct the clock of the webhook worker.',
  },
  CERT_UNTRUSTED: {
    summary: 'The certificate of the receiver is not from a trusted authority, or its chain is incomplete.',
    advice:
      'Serve the complete chain of a certificate from a public authority, or let the operator trust yours with NODE_EXTRA_CA_CERTS.',
  },
  TLS_CLIENT_CERTIFICATE: {
    summary: 'The receiver demands a client certificate, and Callplane sends none.',
    advice: 'Exempt the route from client certificates: the signature proves the sender.',
  },
  TLS_NOT_SPOKEN: {
    summary: 'The port of the URL does not serve TLS.',
    advice: 'Correct the port of the URL, or serve TLS there.',
  },
  TLS_NAME_UNKNOWN: {
    summary: 'The receiver does not know the host name of the URL, or got none because the host is an address.',
    advice: 'Set up the host name at the receiver or its proxy, or correct the URL.',
  },
  TLS_REFUSED: {
    summary: 'The receiver refused the TLS handshake.',
    advice: 'Check that it accepts usual ciphers of TLS 1.2 or 1.3, and demands no client certificate.',
  },
  TLS_TIMEOUT: {
    summary: 'The TLS handshake did not end within 10 seconds.',
    advice: 'Check the load and the TLS settings of the receiver.',
  },
  TLS_FAILED: {
    summary: 'The TLS handshake failed.',
    advice: 'Check that the port of the URL serves TLS 1.2 or 1.3.',
  },
  RESPONSE_TIMEOUT: {
    summary: 'The receiver took the request and did not answer within 10 seconds.',
    advice: 'Answer before the work: store the event, answer 2xx, and process it afterwards.',
  },
  RESPONSE_FAILED: {
    summary: 'The connection ended before a complete answer.',
    advice: 'Look for a crash or a time-out in the logs of the receiver and of its proxy.',
  },
  RESPONSE_INVALID: {
    summary: 'The answer is not valid HTTP.',
    advice: 'Check that the port of the URL serves HTTP, with TLS for https.',
  },
  HTTP_3XX: {
    summary: 'The receiver answered with a redirect, and Callplane follows none.',
    advice: 'Set the URL of the endpoint to the address that the redirect names, then replay.',
  },
  HTTP_304: {
    summary: 'The receiver answered as if the request were a GET of something in a cache.',
    advice: 'Exempt the route from caching, and answer 2xx once the event is stored; then replay.',
  },
  HTTP_401: {
    summary: 'The receiver demands a login or refused the signature.',
    advice:
      'Exempt the route from logins, and check that it verifies the raw body with the secret of this key version; then replay.',
  },
  HTTP_404: {
    summary: 'The receiver has no POST route at this path.',
    advice: 'Correct the path of the URL, or deploy the route; then replay.',
  },
  HTTP_410: {
    summary: 'The receiver answered that the route is gone for good.',
    advice: 'Correct the URL, or remove the endpoint.',
  },
  HTTP_413: {
    summary: 'The receiver or its proxy rejects a body of this size.',
    advice: 'Raise the limit for bodies to at least 256 KiB, then replay.',
  },
  HTTP_429: {
    summary: 'The receiver limits the rate of requests.',
    advice: `Set maxPerSecond or maxConcurrent of the endpoint below the limit. ${RETRIED}.`,
  },
  HTTP_RETRIED: {
    summary: 'The receiver asked for the request to be sent again later.',
    advice: `Look into the receiver's log if it happens again. ${RETRIED}.`,
  },
  HTTP_4XX: {
    summary: 'The receiver rejected the request.',
    advice: 'Read the answer and the log of the receiver, mend the route, then replay.',
  },
  HTTP_500: {
    summary: 'The receiver failed with an error of its own.',
    advice: `Look for the error in the receiver's log. ${RETRIED}.`,
  },
  HTTP_502: {
    summary: 'A proxy in front of the receiver cannot reach it, or it is overloaded.',
    advice: `Check that the receiver runs and is healthy. ${RETRIED}.`,
  },
  HTTP_OTHER: {
    summary: 'The receiver answered with a status that is no final answer to a POST.',
    advice: 'Answer 2xx once the event is stored, then replay.',
  },
} as const satisfies Record<string, Diagnosis>;
type DiagnosisCode = keyof typeof DIAGNOSES;

/** Codes of Node.js and OpenSSL that mean one of the rows above. */
const SAME_AS: Record<string, DiagnosisCode> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'CERT_UNTRUSTED',
  SELF_SIGNED_CERT_IN_CHAIN: 'CERT_UNTRUSTED',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'CERT_UNTRUSTED',
  UNABLE_TO_GET_ISSUER_CERT: 'CERT_UNTRUSTED',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'CERT_UNTRUSTED',
  HTTP_403: 'HTTP_401',
  HTTP_405: 'HTTP_404',
  HTTP_408: 'HTTP_RETRIED',
  HTTP_425: 'HTTP_RETRIED',
  HTTP_503: 'HTTP_502',
  HTTP_504: 'HTTP_502',
};

/** Reasons of OpenSSL (`ERR_SSL_…`), whose versions put different words before these. */
const OPENSSL_REASONS: readonly (readonly [RegExp, DiagnosisCode])[] = [
  // Callplane sends no certificate, so a receiver that complains of one has missed it.
  [/_ALERT_(CERTIFICATE_REQUIRED|BAD_CERTIFICATE)$/, 'TLS_CLIENT_CERTIFICATE'],
  [/_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/, 'TLS_NOT_SPOKEN'],
  [/_(UNRECOGNIZED_NAME|ALERT_MISSING_EXTENSION)$/, 'TLS_NAME_UNKNOWN'],
  [/_ALERT_(HANDSHAKE_FAILURE|INSUFFICIENT_SECURITY)$/, 'TLS_REFUSED'],
];

export interface DiagnosedAttempt {
  outcome: AttemptOutcome;
  errorCode: string | null;
  statusCode: number | null;
}

/** Explains an attempt that failed; null after a success. */
export function diagnoseAttempt(attempt: DiagnosedAttempt): Diagnosis | null {
  if (attempt.outcome === 'success') return null;
  const code = codeOf(attempt);
  const { summary, advice } = DIAGNOSES[code];
  // The summary of a whole class of answers names the status.
  return { summary: attempt.statusCode === null ? summary : `HTTP ${attempt.statusCode}: ${lower(summary)}`, advice };
}

/**
 * Explains a failed delivery by its reason and its last attempt; null without a failure.
 * @param lastAttempt null if there was none, or if it is not known.
 */
export function diagnoseDelivery(
  failureReason: DeliveryFailureReason | null,
  attempts: number,
  lastAttempt: DiagnosedAttempt | null,
): Diagnosis | null {
  if (failureReason === null) return null;
  const last = lastAttempt === null ? null : diagnoseAttempt(lastAttempt);
  switch (failureReason) {
    case 'endpoint_deleted':
      return {
        summary: 'The endpoint was removed while the delivery was open.',
        advice: 'Register an endpoint again if the events are still needed; GET /v1/events has them.',
      };
    case 'run_expired':
      return {
        summary: 'The run was older than 7 days before an attempt succeeded.',
        advice: `${last === null ? 'Enable the endpoint.' : withoutRetry(last.advice)} Then replay the delivery.`,
      };
    case 'attempts_exhausted':
      return last === null
        ? { summary: `All ${attempts} attempts failed.`, advice: 'Mend the receiver, then replay the delivery.' }
        : {
            summary: `All ${attempts} attempts failed, the last one because of this: ${lower(last.summary)}`,
            advice: `${withoutRetry(last.advice)} Then replay the delivery.`,
          };
    default:
      return last ?? { summary: DEFAULT_SUMMARY[failureReason], advice: 'Correct the endpoint, then replay.' };
  }
}

const DEFAULT_SUMMARY = {
  rejected: 'The receiver rejected the request.',
  unsafe_destination: 'The destination is not allowed.',
};

function codeOf({ outcome, errorCode, statusCode }: DiagnosedAttempt): DiagnosisCode {
  const code = statusCode === null ? (errorCode ?? '') : `HTTP_${statusCode}`;
  const known = SAME_AS[code] ?? code;
  if (Object.hasOwn(DIAGNOSES, known)) return known as DiagnosisCode;
  if (statusCode !== null) return classOf(statusCode);
  const reason = OPENSSL_REASONS.find(([pattern]) => code.startsWith('ERR_SSL_') && pattern.test(code));
  if (reason !== undefined) return reason[1];
  switch (outcome) {
    case 'blocked':
      return 'URL_NOT_ALLOWED';
    case 'dns':
      return 'DNS_FAILED';
    case 'connect':
      return 'CONNECT_FAILED';
    case 'tls':
      return 'TLS_FAILED';
    case 'timeout':
      return 'RESPONSE_TIMEOUT';
    default:
      return code.startsWith('HPE_') ? 'RESPONSE_INVALID' : 'RESPONSE_FAILED';
  }
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

function classOf(statusCode: number): DiagnosisCode {
  if (REDIRECTS.includes(statusCode)) return 'HTTP_3XX';
  if (statusCode >= 400 && statusCode <= 499) return 'HTTP_4XX';
  return statusCode >= 500 && statusCode <= 599 ? 'HTTP_500' : 'HTTP_OTHER';
}

const lower = (sentence: string): string =>
  /^(DNS|HTTP|TLS)\b/.test(sentence) ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1);

const withoutRetry = (advice: string): string => advice.replace(` ${RETRIED}.`, '').replace(/[,;] then replay\.$/, '.');
