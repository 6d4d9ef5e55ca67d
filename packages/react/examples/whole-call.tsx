import { Call } from '@callplane/react';
import '@callplane/react/styles.css';

/** A whole call. It fills the element around it. */
export function WholeCall({ url, token }: { url: string; token: string }) {
  return <Call url={url} token={token} audio video />;
}
