/* Starts the reference without fonts, telemetry and assistants, which would need other hosts. */
globalThis.Scalar.createApiReference('#reference', {
  url: 'openapi.json',
  layout: 'modern',
  theme: 'default',
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  hideClientButton: true,
  hiddenClients: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultOpenFirstTag: false,
  // A link to a section focuses the section, which would draw a frame around a whole screen.
  customCss: 'section:focus, .section:focus { outline: none }',
});
