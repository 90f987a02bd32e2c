// Made by `npm run generate` from docs/openapi.json. Do not edit.

export interface components {
    schemas: {
        /**
         * Account
         * @description One user of the pool. `reserved_us` is held by running packages, on top of `spent_us`.
         */
        Account: {
            account_id: string;
            name: string;
            /** @enum {unknown} */
            state: "active" | "revoked";
            granted_us: number;
            spent_us: number;
            /** @default 0 */
            reserved_us?: number;
            created_at: number;
        };
        /** AccountReply */
        AccountReply: {
            /** @default 1 */
            v?: number;
            account: components["schemas"]["Account"];
        };
        /**
         * Acknowledge
         * @description Free the storage of packages that the client needs no more. A running one is cancelled first.
         */
        Acknowledge: {
            /** @default 1 */
            v?: number;
            package_ids: string[];
        };
        /** AcknowledgeReply */
        AcknowledgeReply: {
            /** @default 1 */
            v?: number;
        };
        /**
         * AwaitTasks
         * @description Read what is new of packages. An embedded master may hold the request for up to `hold_s` until something is.
         *
         *     Attributes:
         *         unwritable: The client reads the reply's `unwritable`: a master that cannot write answers with it, and not with
         *             an error.
         */
        AwaitTasks: {
            /** @default 1 */
            v?: number;
            /** @default - */
            session?: string;
            packages: components["schemas"]["Cursor"][];
            /** @default 0 */
            hold_s?: number;
            /** @default false */
            unwritable?: boolean;
        };
        /**
         * AwaitTasksReply
         * @description Packages in the order of the request. An unknown or deleted package has a text in `missing` instead of a status.
         *
         *     `fleet` comes while one of the packages waits for its first workers, from a master that knows of a fleet.
         *     `unwritable` comes while the master, or a worker that shares its folder, cannot store results. It may then come
         *     without packages.
         */
        AwaitTasksReply: {
            /** @default 1 */
            v?: number;
            packages: components["schemas"]["PackageStatus"][];
            /** @default {} */
            missing?: {
                [key: string]: string;
            };
            /** @default 0 */
            retry_after_s?: number;
            /** @default null */
            fleet?: components["schemas"]["FleetStatus"] | null;
            /** @default null */
            unwritable?: components["schemas"]["Unwritable"] | null;
        };
        /**
         * BlobData
         * @description Task i's data lies in a blob: n serialized items one after the other, then a table of their n + 1 offsets.
         *
         *     An offset is 8 bytes, little-endian; the table starts at size - 8 * (n + 1). So a worker reads any range of
         *     tasks with two byte-range requests, or one once it has the table. Of a sealed package, the n seals of SEAL_BYTES
         *     each stand right before the table.
         */
        BlobData: {
            /** @enum {unknown} */
            type: "blob";
            blob: components["schemas"]["BlobRef"];
        };
        /**
         * BlobRef
         * @description Bytes [offset, offset + size) of a blob.
         */
        BlobRef: [
            string,
            number,
            number
        ];
        /**
         * CancelTasks
         * @description Cancel the whole package, or (with `ranges`) some of its tasks. The reply comes when it is decided.
         *
         *     `only_queued`: tasks that a worker has go on, all others of the package are cancelled.
         */
        CancelTasks: {
            /** @default 1 */
            v?: number;
            package_id: string;
            /** @default null */
            ranges?: [
                number,
                number
            ][] | null;
            /** @default false */
            only_queued?: boolean;
        };
        /**
         * CancelTasksReply
         * @description `cancelled`: the tasks that will have no value because of this call (whole packages: all without a result).
         */
        CancelTasksReply: {
            /** @default 1 */
            v?: number;
            /** @enum {unknown} */
            state: "cancelled" | "completed" | "error" | "expired" | "failed" | "running";
            /** @default [] */
            cancelled?: [
                number,
                number
            ][];
            /** @default 0 */
            charged_us?: number;
        };
        /**
         * ConnectedWorker
         * @description One worker, as its last retrieval described it.
         *
         *     Attributes:
         *         host: The name of its machine; empty if the worker is of an earlier release, or has sent no retrieval since
         *             the master started.
         *         executors: How many it has, busy or not; 0: it has sent no retrieval since the master started.
         *         pythons: The minor versions of Python that it runs; empty as for `host`.
         *         seen_at: When it last sent a request, in seconds since 1970; may be some seconds old.
         *         set_aside: The packages that it cannot run.
         */
        ConnectedWorker: {
            worker_id: string;
            /** @default  */
            host?: string;
            /** @default 0 */
            executors?: number;
            /** @default [] */
            pythons?: string[];
            seen_at: number;
            /** @default [] */
            set_aside?: components["schemas"]["SetAside"][];
        };
        /**
         * CreateAccount
         * @description The caller makes the token (256 random bits) and sends only its SHA-256, so the token never travels here.
         */
        CreateAccount: {
            /** @default 1 */
            v?: number;
            idempotency_key: string;
            name: string;
            token_hash: string;
            quota_us: number;
        };
        /**
         * Cursor
         * @description How far a client has read a package's results: the head version of the last page it has.
         */
        Cursor: {
            package_id: string;
            /** @default 0 */
            cursor?: number;
        };
        /**
         * ErrorReply
         * @description The body of every answer whose status is not 200.
         */
        ErrorReply: {
            /** @default 1 */
            v?: number;
            code: string;
            message: string;
            /** @default false */
            retryable?: boolean;
            /** @default null */
            retry_after_s?: number | null;
        };
        /**
         * ExtendLeases
         * @description Extend leases: the worker lives.
         *
         *     Attributes:
         *         unwritable: Why the worker cannot write results to the folder that it shares with its pool's own master.
         */
        ExtendLeases: {
            /** @default 1 */
            v?: number;
            worker_id: string;
            leases: components["schemas"]["LeaseRef"][];
            /** @default null */
            unwritable?: components["schemas"]["Unwritable"] | null;
        };
        /**
         * ExtendLeasesReply
         * @description `hungry`, `waiting`: as in PublishResultsReply.
         */
        ExtendLeasesReply: {
            /** @default 1 */
            v?: number;
            leases: components["schemas"]["LeaseView"][];
            /** @default false */
            hungry?: boolean;
            /** @default false */
            waiting?: boolean;
        };
        /**
         * FleetStatus
         * @description The hosts of a deployment's workers, which come and go with the work.
         *
         *     Attributes:
         *         running: Those that are there.
         *         starting: Those that are wanted and not there yet.
         *         message: Why no more can start, as the service says that should start them.
         */
        FleetStatus: {
            /** @default 0 */
            running?: number;
            /** @default 0 */
            starting?: number;
            /** @default null */
            message?: string | null;
        };
        /**
         * GiveBack
         * @description Tasks that the worker will not run.
         *
         *     Attributes:
         *         leaving: The worker has nothing left and ends; the master counts on it no more. Then `returns` may be empty,
         *             which a master of an earlier release refuses; the worker ends all the same.
         */
        GiveBack: {
            /** @default 1 */
            v?: number;
            worker_id: string;
            returns: components["schemas"]["Return"][];
            /** @default false */
            leaving?: boolean;
        };
        /** GiveBackReply */
        GiveBackReply: {
            /** @default 1 */
            v?: number;
        };
        /**
         * GrantQuota
         * @description Adds compute time; a negative sum takes some back, never below what is spent.
         */
        GrantQuota: {
            /** @default 1 */
            v?: number;
            idempotency_key: string;
            account_id: string;
            quota_us: number;
        };
        /**
         * Hello
         * @description Check the connection and the token.
         */
        Hello: {
            /** @default 1 */
            v?: number;
        };
        /**
         * HelloReply
         * @description The caller's role and account. `seal_key`, for users, makes and verifies their seals; None: no seals here.
         */
        HelloReply: {
            /** @default 1 */
            v?: number;
            release: string;
            /** @enum {unknown} */
            role: "admin" | "user" | "worker";
            /** @default null */
            account_id?: string | null;
            /** @default null */
            name?: string | null;
            /** @default 0 */
            granted_us?: number;
            /** @default 0 */
            spent_us?: number;
            /** @default 0 */
            task_timeout_s?: number;
            /** @default null */
            seal_key?: Uint8Array | null;
        };
        /**
         * InlineData
         * @description Task i's data is items[i], serialized by the client.
         *
         *     Attributes:
         *         seals: Of a sealed package: theirs, one after the other.
         */
        InlineData: {
            /** @enum {unknown} */
            type: "inline";
            items: Uint8Array[];
            /** @default  */
            seals?: Uint8Array;
        };
        /**
         * Lease
         * @description The right to run a chunk's tasks for `lease_s` from the answer on.
         *
         *     Attributes:
         *         ranges: The tasks of it that are left to do, in order; usually all.
         *         attempt: 1 for the first retrieval.
         *         account: Opaque; an executor never serves two.
         *         code, code_link: The task code; the link is for code that is not inline.
         *         data: For a range: the package's. Inline: the items of `ranges`, one after the other. Blob: the package's.
         *         data_link: For a blob, good for byte ranges.
         *         tasks: n of the package (the length of a data blob's table).
         *         codec: Of task data and results; with "msgpack" the code is a reference, and `python` is ignored.
         *         mean_us: Mean duration of the package's tasks, as measured so far; 0: unknown.
         *         wait_us: How long the chunk waited in the queue; the worker repeats it in its publications.
         *         task_timeout_s: The limit for one task.
         *         threads_per_task, depth: As in StartTasks.
         *         retries, retry_on: As in StartTasks; the time of all attempts is the task's.
         *         budget_us: What the account has left; a task that runs longer is stopped.
         *         collect_us: While all executors have work, the worker may collect results for this long before it publishes
         *             them: a request may cost money.
         *         seal, seal_key: Of a sealed package: the seal of its code, and the account's key. Executors never see the key.
         *         elsewhere: What this worker cannot run, it gives back with the reason (`unfit`), and another worker runs it.
         *             False: no worker can (or the master is of an earlier release), so the worker reports the failure.
         */
        Lease: {
            package_id: string;
            lease_id: string;
            receipt: string;
            start: number;
            end: number;
            generation: number;
            ranges: [
                number,
                number
            ][];
            /** @default 1 */
            attempt?: number;
            account: string;
            lease_s: number;
            code: components["schemas"]["TaskCode"];
            /** @default null */
            code_link?: components["schemas"]["Link"] | null;
            data: components["schemas"]["RangeData"] | components["schemas"]["InlineData"] | components["schemas"]["BlobData"];
            /** @default null */
            data_link?: components["schemas"]["Link"] | null;
            tasks: number;
            /**
             * @default value
             * @enum {unknown}
             */
            call?: "args" | "args_kwargs" | "value";
            /**
             * @default pickle
             * @enum {unknown}
             */
            codec?: "msgpack" | "pickle";
            python: string;
            /** @default 0 */
            mean_us?: number;
            /** @default 0 */
            wait_us?: number;
            task_timeout_s: number;
            budget_us: number;
            /** @default 200000 */
            publish_us?: number;
            /** @default 0 */
            retries?: number;
            /** @default [] */
            retry_on?: string[];
            /** @default null */
            seal?: Uint8Array | null;
            /** @default null */
            seal_key?: Uint8Array | null;
            /** @default null */
            threads_per_task?: number | null;
            /** @default false */
            elsewhere?: boolean;
            /** @default 0 */
            depth?: number;
        };
        /**
         * LeaseRef
         * @description Which lease a message is about, and of which chunk.
         *
         *     Attributes:
         *         package_id: Of the package whose tasks it leases.
         *         lease_id: New for each retrieval of the chunk; part of its result blobs' keys.
         *         receipt: The queue's handle, with which the master extends or deletes the message.
         *         start, end, generation: The chunk: tasks [start, end) of the package, cut at this version of its head.
         */
        LeaseRef: {
            package_id: string;
            lease_id: string;
            receipt: string;
            start: number;
            end: number;
            generation: number;
        };
        /**
         * LeaseView
         * @description What the master still wants of a lease.
         */
        LeaseView: {
            lease_id: string;
            /** @enum {unknown} */
            state: "ended" | "finished" | "wanted";
            /** @default [] */
            ranges?: [
                number,
                number
            ][];
            /** @default 0 */
            lease_s?: number;
            /** @default 0 */
            budget_us?: number;
        };
        /**
         * Link
         * @description A presigned request for one object and one method.
         *
         *     Attributes:
         *         method: What to request.
         *         url: Where. One that starts with "/" follows the endpoint by which the caller reaches the master; such links are
         *             answered only to calls with the header `Cloudpar-Links: relative`.
         *         headers: What to send with the request.
         */
        Link: {
            /** @enum {unknown} */
            method: "GET" | "POST" | "PUT";
            url: string;
            /** @default {} */
            headers?: {
                [key: string]: string;
            };
        };
        /** ListAccounts */
        ListAccounts: {
            /** @default 1 */
            v?: number;
        };
        /** ListAccountsReply */
        ListAccountsReply: {
            /** @default 1 */
            v?: number;
            accounts: components["schemas"]["Account"][];
        };
        /**
         * ListPackages
         * @description The account's packages, newest first; an admin sees every account's.
         */
        ListPackages: {
            /** @default 1 */
            v?: number;
            /** @default 100 */
            limit?: number;
        };
        /**
         * ListPackagesReply
         * @description `executors` published lately for any running package listed, each counted once; None: the master is older.
         */
        ListPackagesReply: {
            /** @default 1 */
            v?: number;
            packages: components["schemas"]["PackageSummary"][];
            /** @default null */
            executors?: number | null;
        };
        /**
         * ListWorkers
         * @description List the workers that sent a request within the last minute, and what each of them cannot run.
         */
        ListWorkers: {
            /** @default 1 */
            v?: number;
        };
        /**
         * ListWorkersReply
         * @description By host. `now` is the master's clock, which `seen_at` goes by.
         */
        ListWorkersReply: {
            /** @default 1 */
            v?: number;
            now: number;
            /** @default [] */
            workers?: components["schemas"]["ConnectedWorker"][];
        };
        /**
         * PackageStatus
         * @description What is new of one package.
         *
         *     Attributes:
         *         cursor: Send this next time.
         *         more: Further results are ready: send the next request at once.
         *         results: In the order in which they were committed, each task once.
         *         links: For the blobs named by `results`, by key.
         *         failed: Ranges of the tasks that ended in an error, at most 100 of them; progress.errors counts all.
         *         cancelled: Ranges of the tasks that have no result because they were cancelled one by one.
         *         reason: Of a failed, cancelled or expired package: a short code.
         *         message: The same for people, with the remedy.
         *         settled: The charge is final.
         *         codec: How `results` are serialized.
         *         set_aside: Workers that could not run it, so that its tasks run on others.
         *         placement: Of a package that no worker has run for some seconds: which workers there are.
         */
        PackageStatus: {
            package_id: string;
            /** @enum {unknown} */
            state: "cancelled" | "completed" | "error" | "expired" | "failed" | "running";
            cursor: number;
            /** @default false */
            more?: boolean;
            /** @default [] */
            results?: components["schemas"]["TaskResult"][];
            /** @default {} */
            links?: {
                [key: string]: components["schemas"]["Link"];
            };
            progress: components["schemas"]["Progress"];
            /** @default [] */
            failed?: [
                number,
                number
            ][];
            /** @default [] */
            cancelled?: [
                number,
                number
            ][];
            /** @default null */
            reason?: string | null;
            /** @default null */
            message?: string | null;
            /** @default false */
            settled?: boolean;
            /**
             * @default pickle
             * @enum {unknown}
             */
            codec?: "msgpack" | "pickle";
            /** @default [] */
            set_aside?: components["schemas"]["Unfit"][];
            /** @default null */
            placement?: components["schemas"]["Placement"] | null;
        };
        /**
         * PackageSummary
         * @description One package of a list. `reason`, `message` and `set_aside` as in PackageStatus.
         */
        PackageSummary: {
            package_id: string;
            account_id: string;
            name: string;
            /** @enum {unknown} */
            state: "cancelled" | "completed" | "error" | "expired" | "failed" | "running";
            started_at: number;
            /** @default null */
            ended_at?: number | null;
            progress: components["schemas"]["Progress"];
            /** @default null */
            reason?: string | null;
            /** @default null */
            message?: string | null;
            /** @default [] */
            set_aside?: components["schemas"]["Unfit"][];
        };
        /**
         * Parts
         * @description One upload in parts of PART_BYTES each: a PUT for each, in any order, then a POST that makes them one payload.
         *
         *     Attributes:
         *         upload_id: Brings fresh links to the same parts when it is sent back; those that are there stay.
         *         links: One a part. The answer's ETag goes into the POST.
         *         complete: Its body is the list of parts as S3 takes it: a CompleteMultipartUpload document with number, ETag and
         *             CRC-32 of each. It succeeds once for a key, as the PUT of the whole does.
         */
        Parts: {
            upload_id: string;
            links: components["schemas"]["Link"][];
            complete: components["schemas"]["Link"];
        };
        /**
         * Placement
         * @description Which of the connected workers can run a package.
         *
         *     Attributes:
         *         workers: How many workers sent requests lately.
         *         fitting: How many of them can run it.
         *         python: The version of Python that it needs; "": any.
         *         others: Some of the workers that cannot run it, with what they lack.
         */
        Placement: {
            /** @default 0 */
            workers?: number;
            /** @default 0 */
            fitting?: number;
            /** @default  */
            python?: string;
            /** @default [] */
            others?: components["schemas"]["Unfit"][];
        };
        /**
         * PrepareResult
         * @description A link for one blob with the large results of a lease.
         *
         *     Attributes:
         *         crc32: zlib.crc32 of the blob.
         *         parts_crc32, upload_id: As in Upload.
         */
        PrepareResult: {
            package_id: string;
            lease_id: string;
            seq: number;
            size: number;
            crc32: number;
            /** @default [] */
            parts_crc32?: number[];
            /** @default null */
            upload_id?: string | null;
        };
        /** PrepareResults */
        PrepareResults: {
            /** @default 1 */
            v?: number;
            results: components["schemas"]["PrepareResult"][];
        };
        /** PrepareResultsReply */
        PrepareResultsReply: {
            /** @default 1 */
            v?: number;
            results: components["schemas"]["PreparedResult"][];
        };
        /** PrepareUploads */
        PrepareUploads: {
            /** @default 1 */
            v?: number;
            uploads: components["schemas"]["Upload"][];
        };
        /** PrepareUploadsReply */
        PrepareUploadsReply: {
            /** @default 1 */
            v?: number;
            uploads: components["schemas"]["PreparedUpload"][];
        };
        /**
         * PreparedResult
         * @description Where to upload a result; `parts` is another way to the same place.
         */
        PreparedResult: {
            key: string;
            link: components["schemas"]["Link"];
            /** @default null */
            parts?: components["schemas"]["Parts"] | null;
        };
        /**
         * PreparedUpload
         * @description Where to upload a payload; no link: it is there already. `parts` is another way to the same place.
         */
        PreparedUpload: {
            key: string;
            /** @default null */
            link?: components["schemas"]["Link"] | null;
            /** @default null */
            parts?: components["schemas"]["Parts"] | null;
        };
        /**
         * Progress
         * @description How far a package is. `executors` counts those that published lately; the last three are sums over its tasks.
         */
        Progress: {
            tasks: number;
            /** @default 0 */
            done?: number;
            /** @default 0 */
            errors?: number;
            /** @default 0 */
            executors?: number;
            /** @default 0 */
            charged_us?: number;
            /** @default 0 */
            mean_us?: number;
            /** @default 0 */
            execute_us?: number;
            /** @default 0 */
            retrieve_us?: number;
            /** @default 0 */
            publish_us?: number;
        };
        /**
         * Publication
         * @description Results of one lease.
         *
         *     Attributes:
         *         seq: Counts the publications and give-backs of this lease, from 0; (lease, seq) is the idempotency key.
         *         results: Any tasks of the lease.
         *         closes: Nothing of the lease will follow; its queue message may go.
         *         wait_us: As the lease said.
         *         retrieve_us: Time of the requests and downloads that brought this lease, held waiting excluded; sent once.
         *         publish_us: Time of the worker's publish requests for this package since its last publication of it; sent once.
         *         refused: The worker cannot run this package at all ("python"), or what it was given of it is not what the client
         *             sealed ("seal"); the package fails with this reason.
         *         message: Why, for people, with the remedy.
         */
        Publication: {
            package_id: string;
            lease_id: string;
            receipt: string;
            start: number;
            end: number;
            generation: number;
            seq: number;
            results: components["schemas"]["TaskResult"][];
            /** @default false */
            closes?: boolean;
            /** @default 0 */
            wait_us?: number;
            /** @default 0 */
            retrieve_us?: number;
            /** @default 0 */
            publish_us?: number;
            /** @default null */
            refused?: ("python" | "seal") | null;
            /** @default null */
            message?: string | null;
        };
        /**
         * PublishResults
         * @description `seals`: the results of sealed packages come with their seals. For a worker without, the master makes them.
         */
        PublishResults: {
            /** @default 1 */
            v?: number;
            worker_id: string;
            executors: number;
            publications: components["schemas"]["Publication"][];
            /** @default false */
            seals?: boolean;
        };
        /**
         * PublishResultsReply
         * @description Every publication is durable.
         *
         *     Attributes:
         *         hungry: Other workers idle. A worker with many untouched tasks gives some back.
         *         waiting: The first chunk of a package waits at a master that holds no requests. A worker retrieves it,
         *             with `besides`, as soon as one of its executors is free.
         */
        PublishResultsReply: {
            /** @default 1 */
            v?: number;
            leases: components["schemas"]["LeaseView"][];
            /** @default false */
            hungry?: boolean;
            /** @default false */
            waiting?: boolean;
        };
        /**
         * RangeData
         * @description Task i's data is the integer start + i * step.
         */
        RangeData: {
            /** @enum {unknown} */
            type: "range";
            start: number | bigint;
            step: number | bigint;
        };
        /**
         * RetrieveTasks
         * @description Retrieve up to `chunks` chunks.
         *
         *     Attributes:
         *         attempt_id: A retry with the same id brings the same chunks.
         *         worker_id: Id of this agent.
         *         executors: How many executors the agent has, busy or not.
         *         host: The name of its machine, for people.
         *         pythons: The minor versions of Python that its executors can run, "3.11". Empty: a worker of an earlier
         *             release, which does not report them; it is handed chunks of every Python.
         *         set_aside: The packages that it cannot run, because it lacks something that they need.
         *         besides: Packages of which it has waiting tasks: it wants chunks of others. A master whose queue cannot choose
         *             hands out what comes.
         *         peek: Lease nothing; answer whether a chunk waits.
         *         again: The worker sent this request before and got no answer.
         */
        RetrieveTasks: {
            /** @default 1 */
            v?: number;
            attempt_id: string;
            worker_id: string;
            executors: number;
            chunks: number;
            /** @default 0 */
            hold_s?: number;
            /** @default  */
            host?: string;
            /** @default [] */
            pythons?: string[];
            /** @default [] */
            set_aside?: string[];
            /** @default [] */
            besides?: string[];
            /** @default false */
            peek?: boolean;
            /** @default false */
            again?: boolean;
        };
        /**
         * RetrieveTasksReply
         * @description Without a lease the worker sends its next request after `retry_after_s`.
         *
         *     Attributes:
         *         holds: This master holds requests, so that a worker may have a `peek` open for as long as it is busy.
         *         waiting: A chunk of a package that is not in `besides` waits.
         */
        RetrieveTasksReply: {
            /** @default 1 */
            v?: number;
            /** @default [] */
            leases?: components["schemas"]["Lease"][];
            /** @default 0 */
            retry_after_s?: number;
            /** @default false */
            holds?: boolean;
            /** @default false */
            waiting?: boolean;
        };
        /**
         * Return
         * @description Untouched tasks of a lease that the worker will not run; see Publication for the other fields.
         *
         *     Attributes:
         *         attempt: As in the lease, so that the master still knows how many workers were lost with these tasks.
         *         unfit: What the worker lacks, so that it cannot run the package; the worker is set aside for it.
         *         used_us: Execution time to charge although there is no result: of tasks that ran for long before they failed for
         *             what the worker lacks.
         */
        Return: {
            package_id: string;
            lease_id: string;
            receipt: string;
            start: number;
            end: number;
            generation: number;
            seq: number;
            ranges: [
                number,
                number
            ][];
            /** @default false */
            closes?: boolean;
            /** @default 1 */
            attempt?: number;
            /** @default null */
            unfit?: components["schemas"]["Unfit"] | null;
            /** @default 0 */
            used_us?: number;
        };
        /**
         * RevokeAccount
         * @description The token is refused from now on, and the account's running packages are cancelled.
         */
        RevokeAccount: {
            /** @default 1 */
            v?: number;
            account_id: string;
        };
        /**
         * SetAside
         * @description A package that a worker cannot run, so that its tasks go to other workers.
         *
         *     Attributes:
         *         lacks: For people: "no module named 'numpy'". Empty: the package names other workers, or was deleted.
         */
        SetAside: {
            package_id: string;
            /** @default  */
            lacks?: string;
        };
        /**
         * StartTasks
         * @description Start a package of n tasks.
         *
         *     Attributes:
         *         idempotency_key: Makes the package id; the same key with the same body answers with the same package.
         *         session: The client process. Starting a package makes an await of the same session that does not name it return
         *             at once, whether it is held or comes next (once for each start), so that the client awaits the new package.
         *         name: The function's name, for people.
         *         codec: Of task data and results; "msgpack" if, and only if, the code is a reference.
         *         python: Minor version of the client's Python, "3.11". With the codec "msgpack" it is ignored.
         *         chunksize: Tasks of each chunk; None: the master sizes chunks from measured durations.
         *         task_timeout_s: Limit for all attempts of a task together, if it is lower than the operator's.
         *         retries: How often a task that raises is tried again, at once and by the same executor.
         *         retry_on: Retry only after these exceptions and subclasses of them; empty: after every Exception.
         *         seal: The seal of a sealed package's code and call (`seals`).
         *         depth: How deep the package nests. A worker runs deeper tasks while others wait for them.
         *         threads_per_task: The limit of numeric libraries in each task; None: the worker's own.
         */
        StartTasks: {
            /** @default 1 */
            v?: number;
            idempotency_key: string;
            /** @default - */
            session?: string;
            /** @default  */
            name?: string;
            n: number;
            code: components["schemas"]["TaskCode"];
            data: components["schemas"]["RangeData"] | components["schemas"]["InlineData"] | components["schemas"]["BlobData"];
            /**
             * @default value
             * @enum {unknown}
             */
            call?: "args" | "args_kwargs" | "value";
            /**
             * @default pickle
             * @enum {unknown}
             */
            codec?: "msgpack" | "pickle";
            python: string;
            /** @default null */
            chunksize?: number | null;
            /** @default null */
            task_timeout_s?: number | null;
            /** @default 0 */
            retries?: number;
            /** @default [] */
            retry_on?: string[];
            /** @default null */
            seal?: Uint8Array | null;
            /** @default null */
            threads_per_task?: number | null;
            /** @default 0 */
            depth?: number;
        };
        /** StartTasksReply */
        StartTasksReply: {
            /** @default 1 */
            v?: number;
            package_id: string;
        };
        /**
         * TaskCode
         * @description The function, serialized or by its name. Exactly one of `inline`, `blob` and `reference` is set.
         *
         *     Attributes:
         *         hash: SHA-256 of the serialized function, or of the reference's text.
         *         inline: The serialized function, if it is small.
         *         blob: Where it lies otherwise.
         *         reference: The function's name; the workers import it.
         */
        TaskCode: {
            hash: string;
            /** @default null */
            inline?: Uint8Array | null;
            /** @default null */
            blob?: components["schemas"]["BlobRef"] | null;
            /** @default null */
            reference?: string | null;
        };
        /**
         * TaskResult
         * @description What became of one task.
         *
         *     Attributes:
         *         index: The task's number in its package.
         *         outcome: "ok": `data` is the serialized value. "error": the task code raised; `data` is the serialized
         *             exception if it pickles (with codec "msgpack" there is none). Everything else: no value, and `message` says
         *             why; "unpicklable": the value cannot be serialized by the package's codec.
         *         duration_us: Monotonic wall time in the executor, unpickling included; this is what is charged.
         *         data: The serialized value or exception, if it is small.
         *         blob: Where it lies otherwise.
         *         message: For people: the exception's line, or the reason.
         *         traceback: The remote traceback, formatted.
         *         stdout: What the task wrote to standard output, bounded, undecodable bytes replaced.
         *         stderr: The same for standard error.
         *         seal: Of a sealed package: on `data`, by the worker's agent.
         *         input: Of a task that raised, for people: what it was called with, such as "value 3" or "arguments (5, b=0)",
         *             cut to INPUT_CHARS characters. It is not sealed.
         */
        TaskResult: [
            number,
            "cancelled" | "crashed" | "error" | "lost" | "memory" | "ok" | "quota" | "timeout" | "unpicklable",
            number,
            Uint8Array | null,
            components["schemas"]["BlobRef"] | null,
            string | null,
            string | null,
            string | null,
            string | null,
            Uint8Array | null,
            string | null
        ];
        /**
         * Unfit
         * @description A worker that cannot run a package, and why.
         *
         *     Attributes:
         *         host: The name of its machine.
         *         lacks: For people: "no module named 'numpy'".
         */
        Unfit: {
            host: string;
            lacks: string;
        };
        /**
         * Unwritable
         * @description A master or a worker that cannot write, such as on a full disk.
         *
         *     Attributes:
         *         why: For people: which folder cannot be written, and what the system says.
         *         errno: The number of the system's error on that machine, such as errno.ENOSPC.
         */
        Unwritable: {
            why: string;
            /** @default 28 */
            errno?: number;
        };
        /**
         * Upload
         * @description A payload that is too large to travel inline.
         *
         *     Attributes:
         *         crc32: zlib.crc32 of the payload. A second, different upload to the same link fails by it.
         *         hash: SHA-256 of task code, so that the same code is uploaded once.
         *         parts_crc32: zlib.crc32 of each part of a payload over WHOLE_BYTES, from a client that can upload parts.
         *         key: The key that was answered for task data whose upload goes on: the reply has fresh links for it.
         *         upload_id: The id that was answered for an upload in parts that goes on: the reply has fresh links for it.
         */
        Upload: {
            /** @enum {unknown} */
            kind: "code" | "data";
            size: number;
            crc32: number;
            /** @default null */
            hash?: string | null;
            /** @default [] */
            parts_crc32?: number[];
            /** @default null */
            key?: string | null;
            /** @default null */
            upload_id?: string | null;
        };
    };
    responses: {
        /**
         * @description `bad_request`: The request is malformed or contradicts itself.
         *
         *     `unsupported_version`: The request speaks a newer protocol than this master.
         */
        400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `invalid_token`: The token is missing, unknown or revoked. */
        401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `quota_exhausted`: The account has no compute time left. */
        402: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `forbidden`: The token is good, but not for this call. */
        403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `not_found`: Nothing of that name is visible to this token. */
        404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `idempotency_conflict`: The idempotency key was used before with another request. */
        409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `gone`: It was there and has been deleted; the text says when and why. */
        410: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `too_large`: Over a limit of `cloudpar_protocol.limits`. */
        413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `rate_limited`: Too many at once; try again after `retry_after_s`. May be sent again. */
        429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `internal`: A fault of the master. Nothing acknowledged is lost; the same request may be sent again. May be sent again. */
        500: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `unavailable`: The master cannot take the request now. May be sent again. */
        503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
