import { Facts, Section } from '../../components/layout.js';
import { Badge, Id, Time } from '../../components/text.js';
import { Link } from '../../navigation/link.js';
import { useScope, useSession, type Scope } from '../../session/session.js';

const SCOPES: readonly (readonly [Scope, string])[] = [
  ['rooms:read', 'Read rooms, usage and operations'],
  ['rooms:create', 'Create rooms'],
  ['rooms:update', 'Change rooms'],
  ['rooms:end', 'End rooms'],
  ['tokens:create', 'Issue participant tokens and TURN credentials'],
  ['participants:read', 'Read participants, sessions and tokens'],
  ['participants:update', 'Change permissions, mute, send messages'],
  ['participants:remove', 'Remove participants'],
  ['webhooks:read', 'Read endpoints, deliveries and events'],
  ['webhooks:write', 'Change endpoints, replay deliveries'],
];

/** What `GET /v1/` answers for this session. */
export function KeyContext() {
  const { apiVersion, projectId, environmentId, keyId, keyType, scopes, session } = useSession();
  const mayJoin = useScope('tokens:create');
  return (
    <>
      <Section title="Context">
        <div className="card">
          <Facts
            facts={[
              ['Project', <Id key="project" value={projectId} label="project's identifier" />],
              ['Environment', <Id key="environment" value={environmentId} label="environment's identifier" />],
              ['Key', <Id key="key" value={keyId} label="key's identifier" />],
              ['Type of key', keyType],
              ['Version of the API', apiVersion],
              ...(session === undefined
                ? []
                : ([
                    ['Signed in with', session.source === 'link' ? 'a one-time link' : 'a secret API key'],
                    ['Session ends', <Time key="ends" value={session.expiresAt} full />],
                  ] as const)),
            ]}
          />
        </div>
      </Section>
      <Section title="Scopes of this session">
        <ul className="card scopes">
          {SCOPES.map(([scope, text]) => (
            <li key={scope}>
              <code>{scope}</code>
              <span className="quiet">{text}</span>
              {scopes.includes(scope) ? <Badge tone="good">granted</Badge> : <Badge tone="quiet">not granted</Badge>}
            </li>
          ))}
        </ul>
      </Section>
      {mayJoin && (
        <Section title="Try a call">
          <div className="card row try-call">
            <p>Join a room of this environment from this browser, with a token made on the spot.</p>
            <Link to="/call" className="button primary">
              Open the call page
            </Link>
          </div>
        </Section>
      )}
    </>
  );
}
