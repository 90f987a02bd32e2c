/** Sections of docs/runbook.md that alarms link to; a test checks that these headings exist. */
export type Anchor = 'api-errors' | 'refused-requests' | 'lost-chunks' | 'timer' | 'worker-token';

export function runbook(anchor: Anchor): string {
  return `See docs/runbook.md#${anchor}`;
}
