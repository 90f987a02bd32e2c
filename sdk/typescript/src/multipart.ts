import { PART_BYTES, WHOLE_BYTES } from './limits.ts';

const STATUSES: Readonly<Record<string, number>> = {
  PreconditionFailed: 412,
  ConditionalRequestConflict: 409,
  InternalError: 500,
  SlowDown: 503,
  ServiceUnavailable: 503,
};

/** Cuts a payload into parts if it is too large to be uploaded whole; otherwise returns no parts. */
export function cut(body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const count = body.length > WHOLE_BYTES ? Math.ceil(body.length / PART_BYTES) : 0;
  return Array.from({ length: count }, (_, number) => body.subarray(number * PART_BYTES, (number + 1) * PART_BYTES));
}

/** Returns the list of an upload's parts. S3 needs the list to combine the parts into one payload. */
export function completion(parts: readonly { etag: string; crc32: number }[]): Uint8Array<ArrayBuffer> {
  const lines = parts.map(({ etag, crc32 }, index) => {
    const text = etag.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
    const checksum = Buffer.alloc(4);
    checksum.writeUInt32BE(crc32);
    const encoded = checksum.toString('base64');
    return `<Part><PartNumber>${index + 1}</PartNumber><ETag>${text}</ETag><ChecksumCRC32>${encoded}</ChecksumCRC32></Part>`;
  });
  const namespace = 'http://s3.amazonaws.com/doc/2006-03-01/';
  return new TextEncoder().encode(
    `<CompleteMultipartUpload xmlns="${namespace}">${lines.join('')}</CompleteMultipartUpload>`,
  );
}

/**
 * Returns the status of S3's answer to the list of parts. S3 may send 200 before it combines the parts. If combining
 * then fails, only the body says so.
 */
export function completionStatus(status: number, body: Uint8Array): number {
  if (status !== 200) {
    return status;
  }
  const code = /<Error>.*?<Code>(\w+)<\/Code>/s.exec(new TextDecoder().decode(body))?.[1];
  return code === undefined ? 200 : (STATUSES[code] ?? 400);
}
