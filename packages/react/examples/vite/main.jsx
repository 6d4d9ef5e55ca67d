import '@callplane/react/styles.css';
import { createRoot } from 'react-dom/client';
import { CallPage } from './call-page';

/** `/token` is a route of your backend. */
async function fetchToken(name) {
  const response = await fetch(`/token?name=${encodeURIComponent(name)}`, { method: 'POST' });
  if (!response.ok) throw new Error('The room cannot be joined.');
  return response.json();
}

createRoot(document.getElementById('root')).render(<CallPage fetchToken={fetchToken} />);
