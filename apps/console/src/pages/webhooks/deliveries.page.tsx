import { Page } from '../../components/layout.js';
import { DeliveryList } from './delivery-list.js';

export default function DeliveriesPage() {
  return (
    <Page title="Deliveries" subtitle="Every event on its way to every endpoint, newest first.">
      <DeliveryList />
    </Page>
  );
}
