import { SUBPROTOCOL } from '@callplane/protocol';
import { WebSocket } from 'ws';
import { Failure } from '../bootstrap.js';
import { ApiClient, signalingUrlOf } from '../client.js';
import type { KnownTenant } from '../fleet/operator.js';
import type { Target } from './options.js';

const OPENS_WITHIN_MS = 10_000;
/** The scopes that the load needs of each key, and with a receiver. */
const SCOPES = ['rooms:create', 'rooms:read', 'rooms:end', 'tokens:create', 'participants:read', 'participants:remove'];
const RECEIVER_SCOPES = ['webhooks:read', 'webhooks:write'];

/** A deployment that was asked before the load begins, so that a wrong option ends the run at once. */
interface Deployment {
  baseUrl: string;
  signalingUrl: string;
  tenants: KnownTenant[];
}

/** @throws Failure if a key is not accepted, or the API or a gateway cannot be reached. */
export async function deploymentOf(target: Target): Promise<Deployment> {
  const baseUrl = target.baseUrl.replace(/\/$/, '').replace(/\/v1$/, '');
  const signalingUrl = target.signalingUrl ?? signalingUrlOf(baseUrl);
  const scopes = target.receiverUrl === undefined ? SCOPES : [...SCOPES, ...RECEIVER_SCOPES];
  const tenants = await Promise.all(target.keys.map((key, n) => tenantOf(baseUrl, key, n, scopes)));
  const environments = tenants.map(({ environmentId }) => environmentId);
  const again = environments.findIndex((id, n) => environments.indexOf(id) !== n);
  // They would read the objects of each other.
  if (again !== -1) throw new Failure(`key ${again + 1} is of the same environment as another --key`);
  await findGateway(signalingUrl);
  return { baseUrl, signalingUrl, tenants };
}

/** The answer of `GET /v1/`. */
interface Known {
  projectId: string;
  environmentId: string;
  scopes: string[];
}

async function tenantOf(baseUrl: string, key: string, n: number, scopes: string[]): Promise<KnownTenant> {
  const { status, error, answer } = await new ApiClient(baseUrl, key).send('GET', '/v1/');
  if (status === null) throw new Failure(`${baseUrl} cannot be reached: ${error}`);
  if (status === 401 || status === 403)
    throw new Failure(`${baseUrl} does not accept key ${n + 1}: it answered ${status}`);
  if (status !== 200) throw new Failure(`${baseUrl} is not the address of an API: GET /v1/ answered ${status}`);
  const { projectId, environmentId, scopes: held } = answer as Known;
  const missing = scopes.filter((scope) => !held.includes(scope));
  if (missing.length > 0) throw new Failure(`key ${n + 1} lacks the scopes ${missing.join(', ')}`);
  return { name: String.fromCodePoint(97 + n), projectId, environmentId, key };
}

async function findGateway(url: string): Promise<void> {
  const socket = new WebSocket(url, [SUBPROTOCOL], { handshakeTimeout: OPENS_WITHIN_MS });
  try {
    await new Promise((resolve, reject) => socket.once('open', resolve).on('error', reject));
  } catch (error) {
    throw new Failure(`no gateway at ${url}, which --signaling-url changes: ${(error as Error).message}`);
  } finally {
    socket.terminate();
  }
}
