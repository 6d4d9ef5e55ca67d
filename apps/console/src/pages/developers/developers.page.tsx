import { Page } from '../../components/layout.js';
import { Tabs } from '../../components/tabs.js';
import { useScope } from '../../session/session.js';
import { Commands } from './commands.js';
import { KeyContext } from './key-context.js';
import { SignatureContractView } from './signature-contract.js';
import { TurnTest } from './turn-test.js';

export default function DevelopersPage() {
  const mayReadWebhooks = useScope('webhooks:read');
  const mayIssue = useScope('tokens:create');
  const tabs = [
    { name: 'key', label: 'Key', content: () => <KeyContext /> },
    { name: 'requests', label: 'Requests', content: () => <Commands /> },
    ...(mayReadWebhooks ? [{ name: 'signatures', label: 'Signatures', content: () => <SignatureContractView /> }] : []),
    ...(mayIssue ? [{ name: 'turn', label: 'TURN test', content: () => <TurnTest /> }] : []),
  ];
  return (
    <Page title="Developers" subtitle="What this session may do, and how your own code does the same.">
      <Tabs label="Developers" tabs={tabs} />
    </Page>
  );
}
