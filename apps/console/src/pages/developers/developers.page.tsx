import type { InputOf, OperationId, SignatureContract } from '@callplane/server/requests';
import { curlOf } from '../../api/curl.js';
import { useApi } from '../../api/hooks.js';
import { Facts, Page, PlainTable, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { Tabs } from '../../components/tabs.js';
import { Badge, Code, Id, Time } from '../../components/text.js';
import { Link } from '../../navigation/location.js';
import { type Scope, useScope, useSession } from '../../session/session.js';
import { VerifySnippets } from '../webhooks/verify-snippets.js';
import { LineTest } from './line-test.js';

export default function DevelopersPage() {
  const mayReadWebhooks = useScope('webhooks:read');
  const mayIssue = useScope('tokens:create');
  const tabs = [
    { name: 'key', label: 'Key', content: () => <KeyContext /> },
    { name: 'requests', label: 'Requests', content: () => <Commands /> },
    ...(mayReadWebhooks ? [{ name: 'signatures', label: 'Signatures', content: () => <SignatureContractView /> }] : []),
    ...(mayReadWebhooks ? [{ name: 'events', label: 'Events', content: () => <EventTypes /> }] : []),
    ...(mayIssue ? [{ name: 'line', label: 'Line', content: () => <LineTest /> }] : []),
  ];
  return (
    <Page title="Developers" subtitle="The rights of this session, and how your own code gets the same.">
      <Tabs label="Developers" tabs={tabs} />
    </Page>
  );
}

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

function KeyContext() {
  const { apiVersion, projectId, environmentId, keyId, keyType, scopes, session } = useSession();
  const mayJoin = useScope('tokens:create');
  return (
    <>
      <Section title="Context">
        <div className="card">
          <Facts
            facts={[
              ['Project', <Id value={projectId} label="project's identifier" />],
              ['Environment', <Id value={environmentId} label="environment's identifier" />],
              ['Key', <Id value={keyId} label="key's identifier" />],
              ['Type of key', keyType],
              ['Version of the API', apiVersion],
              ['Signed in with', session?.source === 'link' ? 'a one-time link' : 'a secret API key'],
              ['Session ends', session !== undefined && <Time value={session.expiresAt} full />],
            ]}
          />
        </div>
      </Section>
      <Section title="Scopes of this session">
        <PlainTable
          label="Scopes"
          head={['Scope', 'Allows to', 'State']}
          rows={SCOPES.map(([scope, text]) => ({
            key: scope,
            cells: [
              <code>{scope}</code>,
              text,
              scopes.includes(scope) ? <Badge tone="good">granted</Badge> : <Badge tone="quiet">not granted</Badge>,
            ],
          }))}
        />
      </Section>
      {mayJoin && (
        <Section title="Try a call">
          <div className="card row spread">
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

function commandsOf(roomId: string) {
  const one = <Id extends OperationId>(title: string, id: Id, input: InputOf<Id>, scope?: Scope) => {
    return { title, id, input, scope };
  };
  return [
    one('Read the context of a key', 'readContext', {}),
    one('Create a room', 'createRoom', { name: 'Consultation' }, 'rooms:create'),
    one(
      'Issue a token for a participant',
      'issueToken',
      {
        roomId,
        participantName: 'Ada',
        permissions: ['room:join', 'audio:publish', 'video:publish'],
      },
      'tokens:create',
    ),
    one('List the participants in the room', 'listParticipants', { roomId, status: 'active' }, 'participants:read'),
    one('Wait for the next events', 'listEvents', { after: 'latest', wait: 20 }, 'webhooks:read'),
    one('End the room', 'endRoom', { roomId }, 'rooms:end'),
  ];
}

function Commands() {
  const { scopes } = useSession();
  const mayReadRooms = useScope('rooms:read');
  const rooms = useApi('listRooms', { limit: 1 }, { enabled: mayReadRooms });
  const roomId = rooms.data?.data[0]?.id ?? 'ROOM_ID';
  const shown = commandsOf(roomId).filter(({ scope }) => scope === undefined || scopes.includes(scope));
  return (
    <>
      <p className="quiet below">
        Put a secret API key into <code>CALLPLANE_API_KEY</code>.
        {roomId !== 'ROOM_ID' && ' The commands name the newest room of this environment.'} The button “Requests” in the
        navigation shows the requests of any page.
      </p>
      {shown.map(({ title, id, input }) => (
        <Section key={title} title={title}>
          <Code text={curlOf(id, input, location.origin)} label={`curl: ${title}`} />
        </Section>
      ))}
    </>
  );
}

function EventTypes() {
  return (
    <Loaded query={useApi('listEventTypes', {})} what="the event types">
      {({ data }) =>
        data.map(({ type, description, schema, example }) => (
          <Section key={type} title={type}>
            <p className="below">{description}</p>
            <Code text={JSON.stringify(example, null, 2)} label={`Example of ${type}`} />
            <details>
              <summary>JSON Schema</summary>
              <Code text={JSON.stringify(schema, null, 2)} label={`JSON Schema of ${type}`} />
            </details>
          </Section>
        ))
      }
    </Loaded>
  );
}

function SignatureContractView() {
  const query = useApi('readSignatureContract', {});
  return (
    <>
      <Section title="How a delivery is signed">
        <div className="card">
          <Loaded query={query} what="the signature contract">
            {(contract) => <Facts facts={factsOf(contract)} />}
          </Loaded>
        </div>
      </Section>
      <Section title="How a receiver verifies it">
        <VerifySnippets version={1} />
      </Section>
    </>
  );
}

/** The short ones come first, so that their rows are low. */
function factsOf(contract: SignatureContract): [string, string][] {
  return Object.entries(contract)
    .map(([name, value]): [string, string] => [wordsOf(name), Array.isArray(value) ? value.join(', ') : String(value)])
    .sort(([, one], [, other]) => one.length - other.length);
}

/** @returns such as "Signature header" for `signatureHeader` */
function wordsOf(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
