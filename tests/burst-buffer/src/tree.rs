//! The mount: names and attributes are the slow directory's, data goes through the cache.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::cache::{Cache, Stored};
use crate::pool::Pool;

/// Nobody else changes the slow directory.
const LIFE: Duration = Duration::from_secs(1);
const MAX_WRITE: u32 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    nodes: Mutex<Nodes>,
    cache: Arc<Cache>,
    pool: Arc<Pool>,
    moved: Arc<Moved>,
    opened: FopenFlags,
}

/// The bytes that the job has moved, and its requests, since the mount was made.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl Moved {
    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// As an agent's statistics have it (docs/online.md), of one length whatever the numbers are.
    pub(crate) fn text(&self) -> String {
        let [bytes, requests] =
            [&self.bytes, &self.requests].map(|number| number.load(Ordering::Relaxed));
        format!("moved_bytes {bytes:020}\nrequests {requests:020}\n")
    }
}

/// Numbers are never given again: the slow side's are.
#[derive(Debug, Default)]
struct Nodes {
    by_number: HashMap<u64, Node>,
    by_name: HashMap<(u64, OsString), u64>,
    last: u64,
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: OsString,
    stored: Option<Arc<Stored>>,
}

impl Tree {
    /// `page_cache`: whether the kernel reads ahead and keeps what was read.
    pub(crate) fn new(root: PathBuf, cache: Arc<Cache>, pool: Arc<Pool>, page_cache: bool) -> Self {
        let nodes = Nodes {
            last: INodeNo::ROOT.0,
            ..Nodes::default()
        };
        Self {
            root,
            nodes: Mutex::new(nodes),
            cache,
            pool,
            moved: Arc::default(),
            opened: match page_cache {
                true => FopenFlags::empty(),
                false => FopenFlags::FOPEN_DIRECT_IO,
            },
        }
    }

    pub(crate) fn moved(&self) -> Arc<Moved> {
        Arc::clone(&self.moved)
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(|held| held.into_inner())
    }

    fn path(&self, number: u64) -> io::Result<PathBuf> {
        let nodes = self.nodes();
        let (mut names, mut at) = (Vec::new(), number);
        while at != INodeNo::ROOT.0 {
            let node = nodes.by_number.get(&at).ok_or(io::ErrorKind::NotFound)?;
            names.push(&node.name);
            at = node.parent;
        }
        let mut path = self.root.clone();
        path.extend(names.into_iter().rev());
        Ok(path)
    }

    fn child(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        Ok(self.path(parent.0)?.join(name))
    }

    fn number(&self, parent: INodeNo, name: &OsStr) -> u64 {
        let mut nodes = self.nodes();
        let key = (parent.0, name.to_owned());
        if let Some(number) = nodes.by_name.get(&key) {
            return *number;
        }
        nodes.last += 1;
        let number = nodes.last;
        let node = Node {
            parent: parent.0,
            name: name.to_owned(),
            stored: None,
        };
        nodes.by_number.insert(number, node);
        nodes.by_name.insert(key, number);
        number
    }

    fn stored(&self, number: u64) -> io::Result<Arc<Stored>> {
        let path = self.path(number)?;
        let mut nodes = self.nodes();
        let node = nodes
            .by_number
            .get_mut(&number)
            .ok_or(io::ErrorKind::NotFound)?;
        if let Some(stored) = &node.stored {
            return Ok(Arc::clone(stored));
        }
        let mut options = File::options();
        options.read(true).write(true);
        let file = options.custom_flags(nix::libc::O_NOFOLLOW).open(path)?;
        let size = AtomicU64::new(file.metadata()?.len());
        let stored = Arc::new(Stored { number, file, size });
        node.stored = Some(Arc::clone(&stored));
        Ok(stored)
    }

    fn open_one(&self, number: u64) -> Option<Arc<Stored>> {
        self.nodes().by_number.get(&number)?.stored.clone()
    }

    fn attributes(&self, number: u64) -> io::Result<FileAttr> {
        // A file that is unlinked and open has no name any more.
        let found = match self.open_one(number) {
            Some(stored) => stored.file.metadata()?,
            None => fs::symlink_metadata(self.path(number)?)?,
        };
        let mut attributes = attributes(number, &found)?;
        if let Some(stored) = self.open_one(number) {
            attributes.size = stored.size.load(Ordering::SeqCst);
        }
        Ok(attributes)
    }

    fn entry(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        fs::symlink_metadata(self.child(parent, name)?)?;
        self.attributes(self.number(parent, name))
    }

    /// Removes a file's name, which is gone or another's now. Those who have the file open keep it.
    fn unname(&self, parent: INodeNo, name: &OsStr) {
        self.nodes().by_name.remove(&(parent.0, name.to_owned()));
    }

    fn own(path: &Path, request: &Request) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(request.uid()), Some(request.gid()))
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> io::Result<FileAttr> {
        let path = self.child(parent, name)?;
        let mut options = File::options();
        options.write(true).create_new(true).mode(mode & 0o777);
        options
            .open(&path)?
            .set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        Self::own(&path, request)?;
        self.unname(parent, name);
        self.entry(parent, name)
    }

    fn change(
        &self,
        number: u64,
        mode: Option<u32>,
        owner: (Option<u32>, Option<u32>),
        size: Option<u64>,
    ) -> io::Result<FileAttr> {
        if let Some(size) = size {
            self.cache.resize(&*self.stored(number)?, size)?;
        }
        let path = self.path(number)?;
        if owner != (None, None) {
            std::os::unix::fs::lchown(&path, owner.0, owner.1)?;
        }
        if let Some(mode) = mode {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o777))?;
        }
        self.attributes(number)
    }

    fn list(&self, number: u64) -> io::Result<Vec<(FileType, OsString)>> {
        let mut found = vec![
            (FileType::Directory, ".".into()),
            (FileType::Directory, "..".into()),
        ];
        for entry in fs::read_dir(self.path(number)?)? {
            let entry = entry?;
            if let Some(kind) = FileType::from_std(entry.file_type()?) {
                found.push((kind, entry.file_name()));
            }
        }
        Ok(found)
    }

    /// A file is durable if its name is, too.
    fn sync(cache: &Cache, stored: &Stored, path: Option<&Path>) -> io::Result<()> {
        cache.sync(stored)?;
        match path.and_then(Path::parent) {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

fn attributes(number: u64, found: &Metadata) -> io::Result<FileAttr> {
    if found.file_type().is_socket() || found.file_type().is_fifo() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let kind = FileType::from_std(found.file_type()).ok_or(io::ErrorKind::Unsupported)?;
    let modified = found.modified()?;
    Ok(FileAttr {
        ino: INodeNo(number),
        size: found.len(),
        blocks: found.blocks(),
        atime: found.accessed()?,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind,
        perm: u16::try_from(found.mode() & 0o7777).unwrap_or(0),
        nlink: u32::try_from(found.nlink()).unwrap_or(1),
        uid: found.uid(),
        gid: found.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    })
}

fn wrong(error: io::Error) -> Errno {
    error.into()
}

impl Filesystem for Tree {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(MAX_WRITE);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.entry(parent, name) {
            Ok(found) => reply.entry(&LIFE, &found, Generation(0)),
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number.0) {
            Ok(found) => reply.attr(&LIFE, &found),
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.change(number.0, mode, (uid, gid), size) {
            Ok(found) => reply.attr(&LIFE, &found),
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.child(parent, name).and_then(|path| {
            fs::DirBuilder::new().mode(mode & 0o777).create(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o777))?;
            Self::own(&path, request)?;
            self.unname(parent, name);
            self.entry(parent, name)
        });
        match made {
            Ok(found) => reply.entry(&LIFE, &found, Generation(0)),
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self
            .make(request, parent, name, mode)
            .and_then(|found| self.stored(found.ino.0).map(|_| found));
        match made {
            Ok(found) => reply.created(
                &LIFE,
                &found,
                Generation(0),
                FileHandle(found.ino.0),
                self.opened,
            ),
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.child(parent, name).and_then(fs::remove_file) {
            Ok(()) => {
                self.unname(parent, name);
                reply.ok();
            }
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.child(parent, name).and_then(fs::remove_dir) {
            Ok(()) => {
                self.unname(parent, name);
                reply.ok();
            }
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            reply.error(Errno::EINVAL);
            return;
        }
        let number = self.number(parent, name);
        let paths = self.child(parent, name).and_then(|from| {
            let to = self.child(new_parent, new_name)?;
            fs::rename(from, to)
        });
        match paths {
            Ok(()) => {
                let mut nodes = self.nodes();
                nodes.by_name.remove(&(parent.0, name.to_owned()));
                nodes
                    .by_name
                    .insert((new_parent.0, new_name.to_owned()), number);
                if let Some(node) = nodes.by_number.get_mut(&number) {
                    node.parent = new_parent.0;
                    node.name = new_name.to_owned();
                }
                drop(nodes);
                reply.ok();
            }
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn open(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.stored(number.0) {
            // The kernel's own cache would hide ours.
            Ok(_) => reply.opened(FileHandle(number.0), self.opened),
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (cache, stored) = (Arc::clone(&self.cache), self.stored(number.0));
        let moved = self.moved();
        self.pool.run(move || {
            match stored.and_then(|stored| cache.read(&stored, offset, size as usize)) {
                Ok(data) => {
                    moved.count(data.len());
                    reply.data(&data);
                }
                Err(error) => reply.error(wrong(error)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (cache, stored) = (Arc::clone(&self.cache), self.stored(number.0));
        let data = data.to_vec();
        let moved = self.moved();
        self.pool.run(move || {
            match stored.and_then(|stored| cache.write(&stored, offset, &data)) {
                Ok(()) => {
                    moved.count(data.len());
                    reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
                }
                Err(error) => reply.error(wrong(error)),
            }
        });
    }

    fn flush(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // A close promises nothing.
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let (cache, stored) = (Arc::clone(&self.cache), self.stored(number.0));
        let path = self.path(number.0).ok();
        self.pool.run(move || {
            match stored.and_then(|stored| Self::sync(&cache, &stored, path.as_deref())) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(wrong(error)),
            }
        });
    }

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        match self.list(number.0) {
            Ok(found) => {
                for (place, (kind, name)) in found.into_iter().enumerate().skip(begin) {
                    let one = match name.to_str() {
                        Some("." | "..") => number.0,
                        _ => self.number(number, &name),
                    };
                    if reply.add(INodeNo(one), place as u64 + 1, kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(wrong(error)),
        }
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        match self
            .path(number.0)
            .and_then(File::open)
            .and_then(|it| it.sync_all())
        {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(wrong(error)),
        }
    }
}
