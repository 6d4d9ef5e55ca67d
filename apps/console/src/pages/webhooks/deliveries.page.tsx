import { Page } from '../../components/layout.js';
import { useLive } from '../../stream/live.js';
import { DeliveryList } from './delivery-list.js';

export default function DeliveriesPage() {
  useLive(['deliveries', 'endpoints']);
  return (
    <Page title="Deliveries" subtitle="Every event on its way to every endpoint, newest first.">
      <DeliveryList />
    </Page>
  );
}
