import type { SignatureContract } from '@callplane/server/requests';
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
