import { useApi } from '../../api/hooks.js';
import { Facts, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { VerifySnippets } from '../webhooks/verify-snippets.js';

/** The contract as the API answers it, and code that fulfils it. */
export function SignatureContractView() {
  const query = useApi('readSignatureContract', {});
  return (
    <>
      <Section title="How a delivery is signed">
        <div className="card">
          <Loaded query={query} what="the signature contract">
            {(contract) => (
              <Facts facts={Object.entries(contract).map(([name, value]) => [wordsOf(name), valueText(value)])} />
            )}
          </Loaded>
        </div>
      </Section>
      <Section title="How a receiver verifies it">
        <VerifySnippets version={1} />
      </Section>
    </>
  );
}

/** @returns such as "Signature header" for `signatureHeader` */
function wordsOf(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

function valueText(value: string | number | readonly number[]): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}
