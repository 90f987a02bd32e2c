/** Where an operator reads on. The anchors are headings of docs/runbook.md; a test looks for them. */
export type Anchor = 'scaling' | 'api-errors' | 'capacity' | 'lost-chunks' | 'timer' | 'worker-token';

export function runbook(anchor: Anchor): string {
  return `See docs/runbook.md#${anchor}`;
}
