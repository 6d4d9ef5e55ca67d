import { Component, type ReactNode } from 'react';
import { Failure } from '../components/states.js';

/** Shows an error of the console's own code in place of its part of the page. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    // React keeps the failure of a page whose file could not be loaded, so only loading everything again helps.
    return <Failure error={this.state.error} onRetry={() => location.reload()} />;
  }
}
