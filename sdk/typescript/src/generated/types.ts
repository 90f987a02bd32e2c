// Made by `npm run generate` from docs/openapi.json. Do not edit.

export interface components {
    schemas: {
        /**
         * Account
         * @description One user of a deployment.
         *
         *     `spent_us` is the sum of the charges for its settled packages. `reserved_us` is the sum of the reserves of all its
         *     other packages. `stored_bytes` is the number of bytes that it stores, and `stored_limit` the number that it may
         *     store before its uploads and starts wait. Only a reply to `ListAccounts` with `storage` has these two fields. An
         *     account without limit has no `stored_limit`. `role` is the role of its token, and `valid_until` the time at which
         *     the token expires, in seconds since 1970 (0: never). `task_role` is the ARN of the IAM role whose credentials its
         *     tasks get; None: they get none. `network` says whether its tasks may use the network.
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
            /** @default null */
            stored_bytes?: number | null;
            /** @default null */
            stored_limit?: number | null;
            /**
             * @default user
             * @enum {unknown}
             */
            role?: "user" | "worker";
            /** @default 0 */
            valid_until?: number;
            /** @default null */
            task_role?: string | null;
            /**
             * @default outbound
             * @enum {unknown}
             */
            network?: "none" | "outbound";
        };
        /** AccountReply */
        AccountReply: {
            /** @default 1 */
            v?: number;
            account: components["schemas"]["Account"];
        };
        /**
         * Acknowledge
         * @description Free the storage of packages whose results are no longer needed. A running package is cancelled first.
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
         * @description Read the news of packages: their new results and their states.
         *
         *     An embedded master may hold the request until there is news, but at most for `hold_s`.
         *
         *     Attributes:
         *         session: See StartTasks.
         *         hold_s: The longest time to hold the request, in seconds; 0: the master answers at once.
         *         unwritable: Whether the client understands the field `unwritable` of the reply. If so, a master that cannot
         *             write sets that field in its reply. A client that does not understand it may get an error instead.
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
         * @description The news of packages, in the order of the request.
         *
         *     Attributes:
         *         missing: For each package without a status, by package id, a text that says why: this account does not have the
         *             package, or the package was deleted over a day ago.
         *         retry_after_s: The seconds after which the client sends its next await if there is no news.
         *         fleet: Present while one of the packages waits for workers, if the master knows of a fleet.
         *         unwritable: Present while the master, or a worker that shares the master's folder, cannot store results. The
         *             reply may then contain no packages.
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
         *     An offset is 8 bytes, little-endian; the table starts at size - 8 * (n + 1). So a worker reads any range of tasks
         *     with two byte-range requests, or with one if it already has the table. In a sealed package, n seals of SEAL_BYTES
         *     each stand directly before the table.
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
         * @description Cancel a whole package, or some of its tasks.
         *
         *     Attributes:
         *         ranges: The tasks to cancel; None: the whole package.
         *         only_queued: Whether to cancel only the tasks that no worker has taken. A chunk in the queue is then cancelled
         *             when the queue delivers it. A request must not have both `only_queued` and `ranges`.
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
         * @description The tasks that have been cancelled.
         *
         *     Attributes:
         *         state: The package's state after the call.
         *         cancelled: The cancelled tasks. If the whole package is cancelled, these are all tasks without a result, except
         *             those that a worker has already reported as stopped. With `ranges`, these are the cancelled tasks of the
         *             ranges. With `only_queued`, these are the tasks that are cancelled at once; the tasks in the queue are
         *             cancelled later.
         *         charged_us: The compute time that was charged for the package so far.
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
         *         host: The name of the worker's machine; empty if the worker is of an earlier release, or has sent no retrieval
         *             since the master started.
         *         executors: The number of the worker's executors, busy or not; 0 if the worker has sent no retrieval since the
         *             master started.
         *         pythons: The minor versions of Python that the worker runs; empty in the same cases as `host`.
         *         seen_at: The time of the worker's last request, in seconds since 1970. The true time may be some seconds later.
         *         set_aside: The packages that the worker cannot run.
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
         * @description Create an account. The caller makes the token (256 random bits) and sends only its SHA-256, never the token.
         *
         *     `valid_s` is the number of seconds after which the token expires; 0: it does not expire. A master of an earlier
         *     release ignores `network`, so the caller must check `network` in the reply.
         */
        CreateAccount: {
            /** @default 1 */
            v?: number;
            idempotency_key: string;
            name: string;
            token_hash: string;
            quota_us: number;
            /**
             * @default user
             * @enum {unknown}
             */
            role?: "user" | "worker";
            /** @default 0 */
            valid_s?: number;
            /**
             * @default outbound
             * @enum {unknown}
             */
            network?: "none" | "outbound";
        };
        /**
         * Cursor
         * @description The position up to which a client has read a package's results.
         *
         *     `cursor` is the `cursor` of the last PackageStatus that the client has read; 0 if it has read none.
         */
        Cursor: {
            package_id: string;
            /** @default 0 */
            cursor?: number;
        };
        /**
         * ErrorReply
         * @description The body of every answer of a master to a call, if the status is not 200.
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
         * @description Extend leases. This request is a beat: it also shows that the worker is alive.
         *
         *     Attributes:
         *         unwritable: The reason why the worker cannot write results to the folder that it shares with its pool's own
         *             master; None if it can write.
         *         credentials: Whether credentials of some of the leases expire soon, so that the worker needs new ones.
         */
        ExtendLeases: {
            /** @default 1 */
            v?: number;
            worker_id: string;
            leases: components["schemas"]["LeaseRef"][];
            /** @default null */
            unwritable?: components["schemas"]["Unwritable"] | null;
            /** @default false */
            credentials?: boolean;
        };
        /**
         * ExtendLeasesReply
         * @description The tasks of the leases that the master still wants. For `hungry` and `waiting` see PublishResultsReply.
         *
         *     If the request has `credentials`, the reply has the credentials for the packages of these leases.
         */
        ExtendLeasesReply: {
            /** @default 1 */
            v?: number;
            leases: components["schemas"]["LeaseView"][];
            /** @default false */
            hungry?: boolean;
            /** @default false */
            waiting?: boolean;
            /** @default [] */
            credentials?: components["schemas"]["TaskCredentials"][];
        };
        /**
         * FleetStatus
         * @description The hosts (machines) of a deployment's workers. They start and stop with the load.
         *
         *     Attributes:
         *         running: The number of hosts that are running.
         *         starting: The number of hosts that are wanted and not running yet.
         *         message: A text for users; None if there is no problem. While hosts are starting, the text says why the last
         *             start failed, or for what the start waits, in the words of the service that starts hosts. If no host runs or
         *             is starting, the text says when the fleet may grow again.
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
         * @description Return tasks that the worker will not run.
         *
         *     Attributes:
         *         leaving: Whether the worker has no tasks left and ends, so that the master takes it off the list of live
         *             workers. `returns` may then be empty. A master of an earlier release refuses an empty list; the worker ends
         *             nevertheless.
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
         * @description Add compute time. A negative amount takes back compute time, but none that is spent or reserved.
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
         *
         *     If `package_id` names a package of the account, `seal_key` in the reply is the key with which this package was
         *     sealed. It may be an earlier key of the account, because an operator may rotate the key.
         */
        Hello: {
            /** @default 1 */
            v?: number;
            /** @default null */
            package_id?: string | null;
        };
        /**
         * HelloReply
         * @description The caller's role and account. Workers and admins have no account.
         *
         *     `seal_key` is the key of the account's seals. If the request names no package, this is the key for new packages.
         *     `seal_key` is None if the caller has no account. It is also None if this master has no keys for seals; then new
         *     packages are not sealed.
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
         *         items: The serialized data of each task. Their number is limited, because each item becomes an object in memory,
         *             and making the object takes time even for a small item.
         *         seals: The items' seals, one after the other, if the package is sealed.
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
         * @description The right to run a chunk's tasks for `lease_s` seconds, counted from the reply that contains the lease.
         *
         *     Attributes:
         *         ranges: The tasks of the chunk that the worker has to run, in order; usually all tasks of the chunk.
         *         attempt: The number of times that the chunk's tasks were leased, including this lease. Leases whose tasks were
         *             given back do not count.
         *         account: An opaque id of the account. An executor never runs tasks of two accounts.
         *         code, code_link: The task code; the link is for code that is not inline.
         *         data: The task data. RangeData and a blob are for the whole package; inline data has only the items of the tasks
         *             in `ranges`, in order.
         *         data_link: The link to a blob of data; it allows requests for byte ranges.
         *         tasks: The number of tasks of the package. The worker needs it to find the table of offsets in a blob of data.
         *         codec: The format of serialized task data and results. With "msgpack" the code is a reference, and the worker
         *             ignores `python`.
         *         mean_us: The mean duration of the package's most recent tasks, in microseconds; 0 if it is unknown.
         *         wait_us: How long the chunk waited in the queue, in microseconds. The worker repeats this time in its
         *             publications.
         *         task_timeout_s: The time limit for one task, in seconds.
         *         python, threads_per_task, depth: See StartTasks.
         *         retries, retry_on: See StartTasks. All tries of a task together count for its charge and its time limit.
         *         budget_us: The compute time that the package may still use, in microseconds. When the package's tasks on this
         *             worker have used up this time, the worker stops those that run.
         *         collect_us: For how many microseconds the worker may collect results before it publishes them, as long as all
         *             its executors have work. This saves requests, which may cost money.
         *         beat_s: The longest time between two renewals of the lease, in seconds. If it is 0, or longer than a third of
         *             `lease_s`, a third of `lease_s` counts instead. Beats renew leases. If `beat_s` of all the worker's leases
         *             is above 0, publications may renew them, too (`PublishResults.others`). The replies to beats and to
         *             publications also say whether the first chunk of a package waits (`waiting`).
         *         seal, seal_key: The seal of the task code, and the account's key, if the package is sealed. Executors never see
         *             the key.
         *         elsewhere: Whether another worker may be able to run the package. If so, a worker that lacks something for the
         *             package gives the chunk back with the reason (`unfit`). If not, the worker runs the tasks nevertheless, and
         *             their errors say what is missing. But if the worker lacks the package's Python version or cannot download
         *             its code or data, it refuses the lease, and the package fails. A worker that cannot keep tasks from the
         *             network always gives back tasks with `network` "none". A master of an earlier release never sets this field.
         *         credentials: The credentials of the account's IAM role. The worker gives them only to executors of this account.
         *             None if the account has no role, or if the worker has not set `RetrieveTasks.credentials`.
         *         network: Whether the tasks may use the network. The master gives leases with "none" only to workers that have
         *             set `RetrieveTasks.offline`.
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
            beat_s?: number;
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
            /** @default null */
            credentials?: components["schemas"]["TaskCredentials"] | null;
            /**
             * @default outbound
             * @enum {unknown}
             */
            network?: "none" | "outbound";
        };
        /**
         * LeaseRef
         * @description Identifies a lease and its chunk.
         *
         *     Attributes:
         *         package_id: The package whose tasks are leased.
         *         lease_id: The id of the lease, which is new for each retrieval of the chunk. It is part of the keys of the
         *             lease's result blobs.
         *         receipt: The queue's handle, with which the master extends or deletes the queue message.
         *         start, end, generation: The chunk: the tasks [start, end) of the package, and the version of the head that cut
         *             them.
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
         * @description The tasks of a lease that the master still wants.
         *
         *     Attributes:
         *         ranges: The tasks that are wanted, if the state is "wanted".
         *         lease_s, budget_us: See Lease. Both times are counted from this reply.
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
         *         method: The HTTP method.
         *         url: The URL. A URL that starts with "/" is relative to the endpoint by which the caller reaches the master;
         *             only calls with the header `Cloudpar-Links: relative` get such links. A URL that starts with "file:" leads
         *             to a file; only calls with the header `Cloudpar-Links: files` get such links.
         *         headers: The headers to send.
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
        /**
         * ListAccounts
         * @description List the accounts whose tokens have this role, oldest first.
         *
         *     If `storage` is set, the reply also has the bytes that each account stores. On AWS this takes several calls for each
         *     account.
         */
        ListAccounts: {
            /** @default 1 */
            v?: number;
            /** @default false */
            storage?: boolean;
            /**
             * @default user
             * @enum {unknown}
             */
            role?: "user" | "worker";
        };
        /** ListAccountsReply */
        ListAccountsReply: {
            /** @default 1 */
            v?: number;
            accounts: components["schemas"]["Account"][];
        };
        /**
         * ListPackages
         * @description List the account's packages, newest first. An admin gets the packages of all accounts.
         *
         *     If there are more than `limit` packages, the list leaves out ended packages before running ones. With `package_id`,
         *     the list has only the package with this id, however old it is. A master of an earlier release ignores `package_id`.
         */
        ListPackages: {
            /** @default 1 */
            v?: number;
            /** @default 100 */
            limit?: number;
            /** @default null */
            package_id?: string | null;
        };
        /**
         * ListPackagesReply
         * @description The packages, and the number of executors that work for them.
         *
         *     Attributes:
         *         executors: The number of executors of all workers that lately published results of the running packages in this
         *             list. A worker that serves several packages counts once. None from a master of an earlier release.
         */
        ListPackagesReply: {
            /** @default 1 */
            v?: number;
            packages: components["schemas"]["PackageSummary"][];
            /** @default null */
            executors?: number | null;
        };
        /**
         * ListUsage
         * @description List the compute time that the accounts were charged, by day. The master knows the last 60 days.
         *
         *     A reply may contain only a part of the list. The caller then sends the reply's `cursor` with its next request.
         */
        ListUsage: {
            /** @default 1 */
            v?: number;
            since: string;
            /** @default null */
            cursor?: string | null;
        };
        /**
         * ListUsageReply
         * @description A part of the list. Several parts may contain the same account and day; the caller adds up their figures.
         *
         *     `cursor` leads to the next part; None: this is the last part.
         */
        ListUsageReply: {
            /** @default 1 */
            v?: number;
            /** @default [] */
            usage?: components["schemas"]["Usage"][];
            /** @default null */
            cursor?: string | null;
        };
        /**
         * ListWorkers
         * @description List the workers that sent a request lately, and what each of them cannot run.
         *
         *     "Lately" is the last minute, unless the master's policy sets a different time (`fleet_memory_s`).
         */
        ListWorkers: {
            /** @default 1 */
            v?: number;
        };
        /**
         * ListWorkersReply
         * @description The workers, ordered by host. `now` is the master's clock, for comparison with `seen_at`.
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
         * @description The news of one package.
         *
         *     Attributes:
         *         cursor: The cursor that the client sends with its next await.
         *         more: Whether further results are ready, so that the client sends its next request at once.
         *         results: New results in the order in which they were committed, each task once.
         *         links: Links for the blobs that `results` name, by key.
         *         failed: Ranges of tasks that ended in an error, at most 100 ranges; progress.errors counts all such tasks.
         *         cancelled: Ranges of tasks that were cancelled while the other tasks of the package ran on. They have no result.
         *             If the package itself was cancelled, its other tasks without a result may be among them.
         *         reason: A short code that says why the package failed, was cancelled or expired.
         *         message: The reason in words for users.
         *         settled: Whether the charge is final.
         *         codec: The format of the serialized `results`.
         *         set_aside: The first workers that could not run the package and therefore left its tasks to other workers.
         *         placement: How many workers are connected, and how many of them can run the package. This field is present if
         *             the package is running and started some seconds ago, and no worker has published its results lately.
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
         * @description One package of a list. `reason`, `message` and `set_aside` mean the same as in PackageStatus.
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
         * @description One upload in parts of PART_BYTES each: a PUT for each part, in any order, then a POST that combines them.
         *
         *     Attributes:
         *         upload_id: The id of the upload. A request with this id gets new links to the same parts. Parts that were
         *             already uploaded stay.
         *         links: A link for the PUT of each part. Each answer has an ETag, which goes into the body of the POST.
         *         complete: The link for the POST. The body is S3's CompleteMultipartUpload document with number, ETag and CRC-32
         *             of each part. Like the PUT of a whole payload, the POST succeeds only once for each key.
         */
        Parts: {
            upload_id: string;
            links: components["schemas"]["Link"][];
            complete: components["schemas"]["Link"];
        };
        /**
         * Placement
         * @description Says how many of the connected workers can run a package.
         *
         *     Attributes:
         *         workers: The number of workers that have sent requests recently.
         *         fitting: The number of these workers that can run the package.
         *         python: The version of Python that the package needs; "": any.
         *         others: Some workers that cannot run the package, with what they lack.
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
         * @description Request a link for one blob with large results of a lease.
         *
         *     Attributes:
         *         seq: The `seq` of the publication whose results are in the blob; it is part of the blob's key.
         *         crc32: zlib.crc32 of the blob.
         *         parts_crc32, upload_id: See Upload.
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
         * @description The links for the upload of a blob of results. The worker may use `parts`, if present, in place of `link`.
         */
        PreparedResult: {
            key: string;
            link: components["schemas"]["Link"];
            /** @default null */
            parts?: components["schemas"]["Parts"] | null;
        };
        /**
         * PreparedUpload
         * @description The place and the links for the upload of a payload.
         *
         *     Attributes:
         *         key: The payload's key in the blob store.
         *         link: The link for the upload; None if the blob store has the payload already.
         *         parts: Links for an upload in parts, which the client may use in place of `link`; None if it can only use
         *             `link`.
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
         * @description A package's progress. All times are in microseconds.
         *
         *     Attributes:
         *         tasks: The number of the package's tasks.
         *         done: The number of these tasks that have a result or were cancelled.
         *         errors: The number of results whose outcome is not "ok".
         *         executors: The number of executors of all workers that published results of the package lately.
         *         charged_us: The compute time that was charged so far.
         *         mean_us: The mean duration of the last tasks that ran to their end; 0 if it is unknown.
         *         execute_us, retrieve_us, publish_us: The total time that running the tasks, retrieving them, and publishing
         *             their results took.
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
         * @description Results of one lease. All times are in microseconds.
         *
         *     Attributes:
         *         seq: The number of this publication, from 0, among the publications and give-backs of this lease. (lease, seq)
         *             is the idempotency key.
         *         results: Results of any tasks of the lease.
         *         closes: Whether this is the last message about the lease, so that the master may delete the queue message.
         *         wait_us: The `wait_us` of the lease.
         *         retrieve_us: The time of the requests and downloads that brought this lease, without the time for which the
         *             master held the requests. Only one publication of the lease reports this time.
         *         publish_us: The time that earlier publish requests for this package took, unless a publication has already
         *             reported it.
         *         refused: If present, the package fails with this reason. "python": the worker has no suitable Python. "seal":
         *             the code or data does not match the client's seal. "payload": the code or data cannot be downloaded. A
         *             master of release 0.3.0 or earlier refuses the reason "payload"; then the lease expires.
         *         message: The reason in words for users.
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
            refused?: ("payload" | "python" | "seal") | null;
            /** @default null */
            message?: string | null;
        };
        /**
         * PublishResults
         * @description Publish results.
         *
         *     Attributes:
         *         executors: The number of the worker's executors.
         *         seals: Whether the worker has sealed the results of sealed packages. If not, because the worker is of an earlier
         *             release, the master seals the results.
         *         others: The worker's leases that have no publication in this request. If the field is given, the request is also
         *             a beat: the master extends these leases and those of the publications, and the reply has a LeaseView of
         *             each. None: the request extends no lease.
         */
        PublishResults: {
            /** @default 1 */
            v?: number;
            worker_id: string;
            executors: number;
            publications: components["schemas"]["Publication"][];
            /** @default false */
            seals?: boolean;
            /** @default null */
            others?: components["schemas"]["LeaseRef"][] | null;
        };
        /**
         * PublishResultsReply
         * @description The reply after all publications are stored durably.
         *
         *     Attributes:
         *         hungry: Whether another worker is idle and the queue has no chunks. If so, a worker with many tasks that it has
         *             not started gives some back.
         *         waiting: Whether a package's first chunk is waiting, at a master that holds no requests. If so, the worker
         *             retrieves that chunk, with `besides`, as soon as one of its executors is free.
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
         * @description Retrieve up to `chunks` chunks, but never more than RETRIEVED_CHUNKS.
         *
         *     Attributes:
         *         attempt_id: The id of this retrieval. A repeated request with the same id returns the same chunks, if it comes
         *             within 5 minutes and before the leases end.
         *         worker_id: The id of this agent.
         *         executors: The number of the agent's executors, busy or not.
         *         hold_s: The longest time to hold the request, in seconds; 0: the master answers at once.
         *         host: The name of the agent's machine, for users.
         *         pythons: The minor versions of Python that the executors can run, such as "3.11". Empty: the worker is of an
         *             earlier release, which does not report versions, and gets chunks for every Python.
         *         set_aside: The packages that the worker cannot run, because it lacks something that they need.
         *         besides: The packages of which the worker already has tasks that have not started. The worker gets only chunks
         *             of other packages. If the master's queue cannot choose among messages, the worker gets first chunks of any
         *             packages instead.
         *         peek: Whether to lease nothing, and to answer only whether a chunk of a package that is not in `besides` waits.
         *         again: Whether the worker has sent this request before, and got no answer.
         *         idle: Whether the worker has no leases. The master may then give it a single chunk, because the worker does not
         *             know yet how long a chunk keeps its executors busy.
         *         own: Whether the tasks of this worker have the rights of the worker's user. If so, the worker runs only tasks of
         *             the master's default account.
         *         credentials: Whether the worker can give AWS credentials to the tasks of one account in such a way that the
         *             tasks of other accounts cannot read them. Other workers get no credentials.
         *         offline: Whether the worker can keep the tasks of an account from the network. Other workers get no leases of
         *             accounts whose tasks may not use the network.
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
            /** @default false */
            idle?: boolean;
            /** @default false */
            own?: boolean;
            /** @default false */
            credentials?: boolean;
            /** @default false */
            offline?: boolean;
        };
        /**
         * RetrieveTasksReply
         * @description The leases that the worker gets.
         *
         *     Attributes:
         *         retry_after_s: If there is no lease, the worker sends its next request after this many seconds.
         *         holds: Whether this master holds requests, so that a busy worker may keep a `peek` open.
         *         waiting: For a request with `peek` or `besides`: whether a chunk of a package that is not in `besides` waits. If
         *             the queue cannot choose among messages, this says whether the first chunk of any package waits.
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
         * @description Tasks that the worker gives back without results; `seq` and `closes` mean the same as in Publication.
         *
         *     Attributes:
         *         attempt: The `attempt` of the lease, from which the master learns how many workers were lost with these tasks.
         *         unfit: The thing that the package needs and the worker lacks. The master records it for the package's client.
         *         used_us: The execution time to charge although there is no result. The tasks ran, and then failed because the
         *             worker lacks something.
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
         * @description Refuse the account's token from now on, and cancel its running packages.
         */
        RevokeAccount: {
            /** @default 1 */
            v?: number;
            account_id: string;
        };
        /**
         * RotateSeal
         * @description Make a new key for the seals of the account. Existing packages keep their keys.
         */
        RotateSeal: {
            /** @default 1 */
            v?: number;
            idempotency_key: string;
            account_id: string;
        };
        /**
         * SetAside
         * @description A package that a worker cannot run, so that its tasks go to other workers.
         *
         *     Attributes:
         *         lacks: The thing that the worker lacks, as a text for users, such as "no module named 'numpy'". Empty if the
         *             master has not recorded the reason or does not look it up, for example because the package was deleted or
         *             the list has many packages.
         */
        SetAside: {
            package_id: string;
            /** @default  */
            lacks?: string;
        };
        /**
         * SetNetwork
         * @description Say whether the account's tasks may use the network, from their next leases on.
         */
        SetNetwork: {
            /** @default 1 */
            v?: number;
            account_id: string;
            /** @enum {unknown} */
            network: "none" | "outbound";
        };
        /**
         * SetRole
         * @description Give the account's tasks the credentials of an IAM role; None: give them none from now on.
         *
         *     Credentials that tasks have already stay valid until they expire, at most an hour later.
         */
        SetRole: {
            /** @default 1 */
            v?: number;
            account_id: string;
            /** @default null */
            task_role?: string | null;
        };
        /**
         * StartTasks
         * @description Start a package of n tasks.
         *
         *     Attributes:
         *         idempotency_key: The master derives the package id from this key, the account, and whether the package is
         *             sealed. If the client repeats the request with the same key, the reply names the same package.
         *         session: The id of the client's session. After the start, the master answers the session's held await at once
         *             or, if no await is held, does not hold the next one. So the client can send an await that names the new
         *             package. An await that already names the new package is held as usual.
         *         name: The function's name, for users.
         *         codec: The format of serialized task data and results; "msgpack" if, and only if, the code is a reference.
         *         python: The minor version of the client's Python, such as "3.11". The master ignores it if the codec is
         *             "msgpack".
         *         chunksize: The largest number of tasks in a chunk; None: the master sizes chunks from measured durations.
         *         task_timeout_s: The time limit for a task including its retries. The operator's limit applies instead if it is
         *             lower, or if this is None.
         *         retries: How often a task that raises an exception is retried, immediately and by the same executor.
         *         retry_on: The classes of exceptions after which a task is retried, including their subclasses. Empty: every
         *             Exception.
         *         seal: The seal of the task code and of how it is called (see `seals`); None if the package is not sealed.
         *         depth: The nesting depth: 0, or one more than the depth of the task that starts this package. While tasks wait
         *             for packages that they started, a worker runs tasks of a greater depth.
         *         threads_per_task: The number of threads that a numeric library may start in each task; None: the worker decides.
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
         * @description A package's function, serialized or as a name. Exactly one of `inline`, `blob` and `reference` is set.
         *
         *     Attributes:
         *         hash: SHA-256 of the serialized function, or of the reference's text.
         *         inline: The serialized function, if it is small.
         *         blob: The place of a large serialized function.
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
         * TaskCredentials
         * @description Temporary AWS credentials for the tasks of one package. No log and no text of an error contains them.
         *
         *     Attributes:
         *         expires_at: The time at which they expire, in seconds since 1970.
         *         region: The AWS region of the deployment, as a default for tasks.
         */
        TaskCredentials: {
            package_id: string;
            access_key_id: string;
            secret_access_key: string;
            session_token: string;
            expires_at: number;
            /** @default  */
            region?: string;
        };
        /**
         * TaskResult
         * @description The result of one task.
         *
         *     Attributes:
         *         index: The task's number in its package.
         *         outcome: With "ok", `data` or `blob` has the serialized value. With "error", the task raised, or its code or
         *             data could not be unpickled. Then `data` or `blob` has the serialized exception, if it can be pickled (never
         *             with codec "msgpack"). With "unpicklable", the package's codec cannot serialize the value, or the value is
         *             over BLOB_BYTES. With "unpicklable" and all other outcomes there is no value, and `message` says why.
         *         duration_us: The wall time in the executor by a monotonic clock, including unpickling, retries and the
         *             serialization of the value. The agent corrects the time if the agent's clock contradicts it. This time is
         *             charged.
         *         data: The serialized value or exception, if it is small.
         *         blob: The place of a large serialized value or exception.
         *         message: A text for users: the last line of the exception, or the reason why there is no value.
         *         traceback: The remote traceback, formatted.
         *         stdout: The task's standard output, cut to a limit, with undecodable bytes replaced.
         *         stderr: The task's standard error, cut to a limit, with undecodable bytes replaced.
         *         seal: The seal of the serialized value or exception, if the package is sealed. The worker's agent makes the
         *             seal; for a worker of an earlier release the master makes it.
         *         input: A text for users: the arguments of a task that raised, such as "value 3" or "arguments (5, b=0)", cut to
         *             INPUT_CHARS characters. It is not sealed.
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
         *         host: The name of the worker's machine.
         *         lacks: The thing that the worker lacks, as a text for users, such as "no module named 'numpy'".
         */
        Unfit: {
            host: string;
            lacks: string;
        };
        /**
         * Unwritable
         * @description Says that a master or a worker cannot write to a folder, for example because the disk is full.
         *
         *     Attributes:
         *         why: A text for users: the folder that cannot be written, and the operating system's message.
         *         errno: The operating system's error number, such as errno.ENOSPC.
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
         *         crc32: zlib.crc32 of the payload. An upload by HTTP fails if its bytes have a different checksum.
         *         hash: SHA-256 of task code, so that the same code is uploaded only once; None for task data.
         *         parts_crc32: zlib.crc32 of each part, if the payload is larger than WHOLE_BYTES and the client can upload parts;
         *             otherwise empty.
         *         key: If this request continues an upload of task data, the key from the earlier reply; the new reply has new
         *             links for this key. Otherwise None.
         *         upload_id: If this request continues an upload in parts, the id from the earlier reply; the new reply has new
         *             links for the parts of that upload. Otherwise None.
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
        /**
         * Usage
         * @description The sum of the charges for an account's packages that were settled on one day. `packages` is their number.
         */
        Usage: {
            account_id: string;
            day: string;
            charged_us: number;
            packages: number;
        };
    };
    responses: {
        /**
         * @description `bad_request`: The request is malformed or contradicts itself.
         *
         *     `unsupported_version`: The message has a newer protocol version than its receiver.
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
        /** @description `forbidden`: The token's role does not permit this call, a payload is another account's, or a link is not valid. */
        403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `not_found`: The thing that the request names does not exist, or this token may not see it. */
        404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `idempotency_conflict`: The idempotency key, account name, token or blob key is already in use for something else. */
        409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `gone`: The package, account or payload that the request names was deleted or revoked; the text says why. */
        410: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `too_large`: The request exceeds a limit of `cloudpar_protocol.limits`, or of the account; the text names the limit. */
        413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `rate_limited`: The account exceeds a limit on requests, connections, running packages or stored bytes; wait `retry_after_s`. May be sent again. */
        429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/msgpack": components["schemas"]["ErrorReply"];
                "application/json": components["schemas"]["ErrorReply"];
            };
        };
        /** @description `internal`: The master has a fault. Nothing that it has acknowledged is lost, and the same request may be sent again. May be sent again. */
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
