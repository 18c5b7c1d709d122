"""Values that several servers change at once: no change is lost."""

import threading

from lsp_server.messages import OffScope
from lsp_server.settings.shared_file import HashedAnswers

SERVERS, FILES = 4, 10


def test_what_several_servers_switch_off_at_once_is_all_off(tmp_path):
    path = tmp_path / "off.json"
    HashedAnswers(path).set(OffScope.FILE, "file:///first", answer=True)  # the file has its salt
    servers = [HashedAnswers(path) for _ in range(SERVERS)]
    together = threading.Barrier(SERVERS)

    def switch_all(number):
        for file in range(FILES):
            together.wait()
            servers[number].set(OffScope.FILE, f"file:///{number}/{file}", answer=True)

    threads = [threading.Thread(target=switch_all, args=(number,)) for number in range(SERVERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [f"file:///{number}/{file}" for number in range(SERVERS) for file in range(FILES)]
    later = HashedAnswers(path)
    assert [name for name in names if not later.get(OffScope.FILE, name)] == []
