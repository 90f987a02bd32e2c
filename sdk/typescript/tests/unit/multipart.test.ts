import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { PART_BYTES, WHOLE_BYTES } from '../../src/limits.ts';
import { completion, completionStatus, cut } from '../../src/multipart.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

test('a payload that is not too large stays whole', () => {
  expect(cut(new Uint8Array(WHOLE_BYTES))).toEqual([]);
});

test('a payload that is too large is cut without a copy', () => {
  const body = new Uint8Array(WHOLE_BYTES + 1);
  const parts = cut(body);
  expect(parts.map((part) => part.length)).toEqual([PART_BYTES, PART_BYTES, PART_BYTES, PART_BYTES, 1]);
  expect(parts.every((part) => part.buffer === body.buffer)).toBe(true);
});

test("S3's list of parts has each part's number, ETag and checksum", () => {
  const list = completion([
    { etag: '"one"', crc32: crc32('abc') },
    { etag: 'a<b&c', crc32: 0 },
  ]);
  expect(new TextDecoder().decode(list)).toBe(
    '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
      '<Part><PartNumber>1</PartNumber><ETag>"one"</ETag><ChecksumCRC32>NSRBwg==</ChecksumCRC32></Part>' +
      '<Part><PartNumber>2</PartNumber><ETag>a&lt;b&amp;c</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part>' +
      '</CompleteMultipartUpload>',
  );
});

test.each([
  [200, '<CompleteMultipartUploadResult>', 200],
  [404, '<Error><Code>NoSuchUpload</Code></Error>', 404],
  [200, '  \n<Error>\n<Code>InternalError</Code></Error>', 500],
  [200, '<Error><Code>SlowDown</Code></Error>', 503],
  [200, '<Error><Code>PreconditionFailed</Code></Error>', 412],
  [200, '<Error><Code>BadDigest</Code></Error>', 400],
])('an answer with status %i and %j means %i', (status, body, meant) => {
  expect(completionStatus(status, bytes(body))).toBe(meant);
});
