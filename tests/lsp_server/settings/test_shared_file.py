"""Values that several servers change at once: no change is lost."""

import threading

from lsp_server.messages import OffScope
from lsp_server.settings.switched_off import SwitchedOff

SERVERS, FILES = 4, 10


def test_what_several_servers_switch_off_at_once_is_all_off(tmp_path):
    path = tmp_path / "off.json"
    SwitchedOff(path).switch(OffScope.FILE, "file:///first", is_off=True)  # the file has its salt
    servers = [SwitchedOff(path) for _ in range(SERVERS)]
    together = threading.Barrier(SERVERS)

    def switch_all(number):
        for file in range(FILES):
            together.wait()
            servers[number].switch(OffScope.FILE, f"file:///{number}/{file}", is_off=True)

    threads = [threading.Thread(target=switch_all, args=(number,)) for number in range(SERVERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [f"file:///{number}/{file}" for number in range(SERVERS) for file in range(FILES)]
    later = SwitchedOff(path)
    assert [name for name in names if not later.includes(OffScope.FILE, name)] == []
