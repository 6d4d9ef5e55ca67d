import type { ApiContext } from '@callplane/server/requests';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState, type SubmitEvent } from 'react';
import { Button } from '../../components/button.js';
import { Check, FormError, InputField } from '../../components/fields.js';
import { signIn } from '../../session/sign-in.js';

export function SignInPage({
  why,
  onSignedIn,
}: {
  why: string | undefined;
  onSignedIn: (context: ApiContext) => void;
}) {
  const [key, setKey] = useState('');
  const [isReadOnly, setReadOnly] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Callplane console';
    input.current?.focus();
  }, []);
  const { mutate, error, isPending } = useMutation({
    mutationFn: async () => onSignedIn(await signIn(key.trim(), isReadOnly)),
    onError: () => input.current?.select(),
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!isPending) mutate();
  };
  return (
    <main className="sign-in">
      <form onSubmit={submit} className="card stack sign-in-card">
        <div className="row brand">
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="28" height="28" />
          Callplane
        </div>
        <h1>Sign in to the console</h1>
        {why !== undefined && (
          <p className="notice" role="status">
            {why}
          </p>
        )}
        <InputField
          label="Secret API key"
          hint="The browser sends the key once and does not keep it. The session ends after 8 hours."
          ref={input}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          maxLength={512}
          placeholder="rtc_sk_…"
          value={key}
          onValue={setKey}
        />
        <Check
          label="Read only"
          hint="This session may look at everything and change nothing."
          checked={isReadOnly}
          onChange={(event) => setReadOnly(event.target.checked)}
        />
        <FormError error={error} />
        <Button kind="primary" type="submit" isBusy={isPending}>
          {isPending ? 'Signing in…' : 'Sign in'}
        </Button>
        <p className="field-hint">
          No key at hand? <code>rtc console login</code> on the server makes a link that works once.
        </p>
      </form>
    </main>
  );
}
