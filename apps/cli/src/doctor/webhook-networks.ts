import { parseAllowedNetworks, risksOf, type AllowedNetwork, type NetworkRisk } from '@callplane/core';
import { failure, ok, warning, type Finding } from './findings.js';

const ADVICE: Record<NetworkRisk, string> = {
  too_wide: 'Name only the networks of your receivers: webhooks can reach every service in this range.',
  metadata:
    'Take link-local addresses and metadata services out: holders of keys that may register webhooks could read credentials there.',
};

/**
 * Checks the networks that webhooks may use although they are not public.
 * @param entries WEBHOOK_ALLOWED_CIDRS as this command has it.
 * @param projects the number of projects, each of which is a customer.
 */
export function checkWebhookNetworks(entries: readonly string[], projects: number): Finding[] {
  const check = 'webhook networks';
  if (entries.length === 0) return [ok(check, 'WEBHOOK_ALLOWED_CIDRS is not set here')];
  let networks: AllowedNetwork[];
  try {
    networks = parseAllowedNetworks(entries);
  } catch (error) {
    return [
      failure(check, (error as Error).message, 'Correct WEBHOOK_ALLOWED_CIDRS: API and webhook workers do not start.'),
    ];
  }
  const risky = networks.flatMap((network) =>
    risksOf(network).map((risk) => warning(`${check} ${network.name}`, `${network.cidr} is allowed`, ADVICE[risk])),
  );
  const names = networks.map(({ name }) => name).join(', ');
  const several =
    projects > 1
      ? [
          warning(
            check,
            `${projects} projects can send requests to ${names}`,
            'Use WEBHOOK_ALLOWED_CIDRS only where all projects are your own.',
          ),
        ]
      : [];
  return risky.length + several.length > 0 ? [...several, ...risky] : [ok(check, `${names} allowed`)];
}
