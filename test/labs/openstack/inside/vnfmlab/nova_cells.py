"""python3 -m vnfmlab.nova_cells NOVA.CONF CELL0: Nova's databases and cells, made in one process.

nova-manage would be started four times for this, three seconds each. CELL0 is the database's URL.
"""
import sys

from nova import config
from nova import objects
from nova.cmd import manage


def main(file, cell0):
    config.parse_args(['nova-manage', '--config-file', file])
    objects.register_all()
    cells = manage.CellV2Commands()
    for what, step in (('the API database', manage.ApiDbCommands().sync),
                       ('cell 0', lambda: cells.map_cell0(cell0)),
                       ('the cells\' databases', manage.DbCommands().sync),
                       ('cell 1', lambda: cells.create_cell(name='cell1'))):
        if step():
            sys.exit('nova: %s could not be made' % what)
        print('nova: made ' + what, flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
