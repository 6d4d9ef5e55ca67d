import '@callplane/react/styles.css';

export const metadata = { title: 'Call' };

/** A call fills the element around it. */
export default function Layout({ children }) {
  return (
    <html lang="en" style={{ colorScheme: 'light dark' }}>
      <body style={{ margin: 0, height: '100dvh' }}>{children}</body>
    </html>
  );
}
